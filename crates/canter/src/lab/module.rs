//! What a kernel module of ours is to the lab: a row of `table`. Its sources are in this program; `out_of_tree` builds
//! them for the guest's kernel, and the guest loads the module before anything else runs.

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValue};
use std::fmt;

/// The source of a module, as it lies below kernel/.
pub struct Source {
    /// Of the module.
    pub name: &'static str,
    /// Where it is made, below kernel/.
    pub folder: &'static str,
    /// Paths below kernel/ and what the files hold.
    pub files: &'static [(&'static str, &'static str)],
}

/// Files by their paths below kernel/, carried in this program.
macro_rules! sources {
    ($($path:literal)*) => { &[$(($path, include_str!(concat!("../../carried/kernel/", $path)))),*] };
}
pub(super) use sources;

/// A module that a machine can have.
pub struct Module {
    pub source: Source,
    /// The option of `canter lab` that asks for the module.
    pub option: Choice,
    /// The option's help: what the guest has with the module.
    pub offers: &'static str,
    /// Reads the option's value (empty: the option has none), and answers how the module is loaded.
    pub load: fn(value: &str) -> Result<Loading, String>,
    /// The driver that takes the cards of [`Loading::cards`]; empty: the module takes none when it is loaded.
    pub driver: &'static str,
    /// Processors that the machine has beside those of Linux.
    pub processors: u8,
    /// Words for the kernel's command line, where Linux has so many processors.
    pub kernel_words: fn(processors: u8) -> String,
}

/// How the command line asks for a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `--bus NAME`.
    Bus(&'static str),
    /// `--NAME`.
    Flag(&'static str),
    /// `--NAME VALUE`: the option's name, and its value's in the help.
    Value(&'static str, &'static str),
}

/// How a module is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loading {
    /// As insmod takes them: `name=value` words.
    pub parameters: String,
    /// Numbers of the SJA1000 cards that the module's driver gets, in the order in which it gets them.
    pub cards: Vec<u8>,
}

/// A module that a machine has, and how it is loaded there.
#[derive(Clone)]
pub struct Chosen {
    pub module: &'static Module,
    pub loading: Loading,
}

impl Module {
    /// A row without a need of its own: no value, parameter, card, processor or word.
    pub const fn plain(source: Source, option: Choice, offers: &'static str) -> Self {
        Self {
            source,
            option,
            offers,
            load: |_| Ok(Loading { parameters: String::new(), cards: Vec::new() }),
            driver: "",
            processors: 0,
            kernel_words: |_| String::new(),
        }
    }

    /// `canwire`.
    pub fn name(&self) -> &'static str {
        self.source.name
    }

    /// The module as a machine has it; `value` is its option's.
    pub fn choose(&'static self, value: &str) -> Result<Chosen, String> {
        Ok(Chosen { module: self, loading: (self.load)(value)? })
    }
}

impl Chosen {
    /// The least number of cards that the machine must have.
    pub fn cards_needed(&self) -> u8 {
        self.loading.cards.iter().max().map_or(0, |card| card + 1)
    }
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.module.name()).field(&self.loading).finish()
    }
}

/// The bus that is there without any module.
const CARDS_BUS: &str = "sja1000";
const CARDS_BUS_IS: &str = "QEMU's CAN bus between the cards, on which a frame takes no time";

/// Adds the options of these modules to a command.
pub fn add_options(command: Command, modules: &'static [Module]) -> Command {
    let buses = modules.iter().filter_map(|module| match module.option {
        Choice::Bus(name) => Some(PossibleValue::new(name).help(module.offers)),
        _ => None,
    });
    let buses: Vec<_> = [PossibleValue::new(CARDS_BUS).help(CARDS_BUS_IS)].into_iter().chain(buses).collect();
    let bus = Arg::new("bus").long("bus").value_name("BUS").default_value(CARDS_BUS).value_parser(buses);
    let command = command.arg(bus.help("What joins the interfaces"));
    modules.iter().fold(command, |command, module| match module.option {
        Choice::Bus(_) => command,
        Choice::Flag(name) => {
            command.arg(Arg::new(name).long(name).action(ArgAction::SetTrue).help(module.offers))
        }
        Choice::Value(name, value) => {
            let parse = |text: &str| (module.load)(text).map(|_| text.to_owned());
            command.arg(Arg::new(name).long(name).value_name(value).value_parser(parse).help(module.offers))
        }
    })
}

/// The modules that these options ask for, in the order of the table.
pub fn chosen(matches: &ArgMatches, modules: &'static [Module]) -> Result<Vec<Chosen>, String> {
    let value = |module: &Module| match module.option {
        Choice::Bus(name) => {
            matches.get_one::<String>("bus").filter(|bus| *bus == name).map(|_| String::new())
        }
        Choice::Flag(name) => matches.get_flag(name).then(String::new),
        Choice::Value(name, _) => matches.get_one::<String>(name).cloned(),
    };
    modules.iter().filter_map(|module| Some(module.choose(&value(module)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Source = Source { name: "toy", folder: "toy", files: &[] };
    fn two(value: &str) -> Result<Loading, String> {
        let cards = value.parse().map(|card| vec![card]).map_err(|_| "a card's number".to_owned())?;
        Ok(Loading { parameters: format!("card={value}"), cards })
    }
    static TOYS: &[Module] = &[
        Module::plain(SOURCE, Choice::Bus("toy-bus"), "a bus"),
        Module { load: two, ..Module::plain(SOURCE, Choice::Value("toy-card", "CARD"), "a card") },
        Module::plain(SOURCE, Choice::Flag("toy"), "a flag"),
    ];

    fn asked(line: &[&str]) -> Result<Vec<Chosen>, String> {
        let command = add_options(Command::new("lab"), TOYS).no_binary_name(true);
        let matches = command.try_get_matches_from(line).map_err(|error| error.to_string())?;
        chosen(&matches, TOYS)
    }

    #[test]
    fn a_row_is_an_option_of_the_command_line() {
        assert!(asked(&[]).unwrap().is_empty() && asked(&["--bus", "sja1000"]).unwrap().is_empty());
        let chosen = asked(&["--bus", "toy-bus", "--toy-card", "3", "--toy"]).unwrap();
        let loadings: Vec<_> =
            chosen.iter().map(|one| (one.loading.parameters.as_str(), one.cards_needed())).collect();
        assert_eq!(loadings, [("", 0), ("card=3", 4), ("", 0)]);
        let error = asked(&["--toy-card", "x"]).unwrap_err();
        assert!(error.contains("a card's number"), "{error}");
        assert!(asked(&["--bus", "no-bus"]).is_err());
    }
}
