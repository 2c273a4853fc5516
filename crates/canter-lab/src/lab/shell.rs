//! Quotes words for a POSIX shell: the guest's scripts must get the command's words unchanged.

/// A word that a shell reads as exactly `word`.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The line that runs a command: one word is a line for bash, several are a program and its arguments.
pub fn command_line(command: &[String]) -> String {
    match command {
        [line] => format!("exec bash -c {}", quote(line)),
        words => format!("exec {}", words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn strings(words: &[&str]) -> Vec<String> {
        words.iter().map(|&w| w.to_owned()).collect()
    }

    #[test]
    fn one_word_is_a_shell_line_and_several_are_an_argument_list() {
        assert_eq!(command_line(&strings(&["echo $HOME; ls"])), "exec bash -c 'echo $HOME; ls'");
        assert_eq!(command_line(&strings(&["echo", "a b", "it's", ""])), r"exec echo 'a b' 'it'\''s' ''");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn a_shell_reads_back_what_was_quoted(word in "[^\0]{0,40}") {
            let output = std::process::Command::new("sh").arg("-c").arg(format!("printf %s {}", quote(&word))).output();
            prop_assert_eq!(output.unwrap().stdout, word.as_bytes());
        }
    }
}
