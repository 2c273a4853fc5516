//! canplayer's assignments of interfaces: `vcan2=can0` sends the frames of can0 to vcan2.

use canter_cli::{
    document::instead,
    failure::{self, Exit, Failure},
};

/// Where the frames of each source go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Destination and source; without a destination (`-=can1`), nowhere.
    pairs: Vec<(Option<String>, String)>,
}

impl Assignment {
    /// Reads `DESTINATION=SOURCE`s.
    pub fn parse(texts: &[String]) -> failure::Result<Self> {
        let usage = |message: String| Failure::new(Exit::Usage, message);
        let mut pairs: Vec<(Option<String>, String)> = Vec::new();
        for text in texts {
            let (destination, source) = text
                .split_once('=')
                .filter(|(destination, source)| !destination.is_empty() && !source.is_empty())
                .ok_or_else(|| {
                    usage(format!("{text}: is not DESTINATION=SOURCE (vcan2=can0; -=can0 sends nothing)"))
                })?;
            if pairs.iter().any(|(_, known)| known == source) {
                return Err(usage(format!("{text}: {source} is assigned twice")));
            }
            pairs.push(((destination != "-").then(|| destination.to_owned()), source.to_owned()));
        }
        Ok(Self { pairs })
    }

    /// The destination of the frames of `source`; `None`: nowhere. As with canplayer, a source without an assignment goes
    /// nowhere if any source has a destination, otherwise to the interface of its name.
    pub fn destination<'a>(&'a self, source: &'a str) -> Option<&'a str> {
        match self.pairs.iter().find(|(_, known)| known == source) {
            Some((destination, _)) => destination.as_deref(),
            None => self.pairs.iter().all(|(destination, _)| destination.is_none()).then_some(source),
        }
    }

    /// Refuses an assignment whose source is not among `sources`.
    pub fn refuse_unknown<'a>(&self, sources: impl Iterator<Item = &'a str> + Clone) -> failure::Result<()> {
        let mut unknown =
            self.pairs.iter().filter(|(_, source)| !sources.clone().any(|known| known == source));
        unknown.next().map_or(Ok(()), |(destination, source)| {
            let destination = destination.as_deref().unwrap_or("-");
            let known: Vec<&str> = sources.clone().collect();
            let message = format!("unknown source {source}{}", instead(source, &known));
            Err(Failure::new(Exit::Usage, format!("{destination}={source}: {message}")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assignment(texts: &[&str]) -> Result<Assignment, String> {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        Assignment::parse(&texts).map_err(|failure| failure.to_string())
    }

    #[test]
    fn frames_go_where_canplayer_sends_them() {
        for (texts, expected) in [
            (&[][..], [Some("can0"), Some("can1")]),
            (&["vcan2=can0"], [Some("vcan2"), None]),
            (&["vcan2=can0", "can0=can1"], [Some("vcan2"), Some("can0")]),
            (&["-=can0"], [None, Some("can1")]),
            (&["-=can0", "a=b"], [None, None]),
        ] {
            let assignment = assignment(texts).unwrap();
            assert_eq!(["can0", "can1"].map(|source| assignment.destination(source)), expected, "{texts:?}");
        }
    }

    #[test]
    fn malformed_and_useless_assignments_are_refused() {
        for texts in [&["can0"][..], &["=can0"], &["can0="], &["a=can0", "b=can0"]] {
            assert!(assignment(texts).is_err(), "{texts:?}");
        }
        let refused = assignment(&["vcan0=cna0"]).unwrap().refuse_unknown(["can0", "can1"].into_iter());
        assert_eq!(
            refused.unwrap_err().to_string(),
            "vcan0=cna0: unknown source cna0 (did you mean \"can0\"?)"
        );
    }
}
