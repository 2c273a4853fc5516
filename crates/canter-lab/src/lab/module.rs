//! The type of a row of `table`: one of our kernel modules. Its sources are in this program; `out_of_tree` builds them
//! for the guest's kernel, and the guest loads the module before the command runs.

use super::arch::Arch;
use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValue};
use std::fmt;

/// The source of a module.
pub struct Source {
    /// The module's name.
    pub name: &'static str,
    /// The folder of its Kbuild file, below kernel/.
    pub folder: &'static str,
    /// Paths below kernel/ with the files' contents.
    pub files: &'static [(&'static str, &'static str)],
}

/// Includes files in this program by their paths below kernel/.
macro_rules! sources {
    ($($path:literal)*) => { &[$(($path, include_str!(concat!("../../carried/kernel/", $path)))),*] };
}
pub(super) use sources;

/// A module that a machine can have.
pub struct Module {
    pub source: Source,
    /// The option of `canter lab` that asks for the module.
    pub option: Choice,
    /// The option's help: what the module adds to the guest.
    pub offers: &'static str,
    /// Reads the option's value (empty: the option has none) and returns how to load the module.
    pub load: fn(value: &str) -> Result<Loading, String>,
    /// The driver for the cards of [`Loading::cards`]; empty: the module gets no cards when it is loaded.
    pub driver: &'static str,
    /// The only architecture that has the module; `None`: all have.
    pub arch: Option<Arch>,
    /// Processors that the machine has in addition to those of Linux.
    pub processors: u8,
    /// Words for the kernel's command line; the argument is the number of Linux's processors.
    pub kernel_words: fn(processors: u8) -> String,
}

/// How the command line asks for a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A value of the option `--bus NAME`.
    Bus(&'static str),
    /// An option without a value: `--NAME`.
    Flag(&'static str),
    /// An option with a value, `--NAME VALUE`: the option's name, and the value's name in the help.
    Value(&'static str, &'static str),
}

/// How a module is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loading {
    /// The module's parameters as insmod takes them: `name=value` words.
    pub parameters: String,
    /// Numbers of the SJA1000 cards that the module's driver gets, in this order.
    pub cards: Vec<u8>,
    /// The name of another module that must be loaded before; empty: none.
    pub needs: &'static str,
}

/// A module that a machine has, and how it is loaded there.
#[derive(Clone)]
pub struct Chosen {
    pub module: &'static Module,
    pub loading: Loading,
}

impl Module {
    /// A row with defaults: no value, parameter, card, processor or word.
    pub const fn plain(source: Source, option: Choice, offers: &'static str) -> Self {
        Self {
            source,
            option,
            offers,
            load: |_| Ok(Loading { parameters: String::new(), cards: Vec::new(), needs: "" }),
            driver: "",
            arch: None,
            processors: 0,
            kernel_words: |_| String::new(),
        }
    }

    /// The module's name: `canwire`.
    pub fn name(&self) -> &'static str {
        self.source.name
    }

    /// Selects the module with the value of its option.
    pub fn choose(&'static self, value: &str) -> Result<Chosen, String> {
        Ok(Chosen { module: self, loading: (self.load)(value)? })
    }
}

impl Chosen {
    /// The least number of cards that the machine must have.
    pub fn cards_needed(&self) -> u8 {
        self.loading.cards.iter().max().map_or(0, |card| card + 1)
    }

    /// Whether the module needs another one that is not among these.
    pub fn lacks_one_of(&self, modules: &[Self]) -> bool {
        let needs = self.loading.needs;
        !needs.is_empty() && !modules.iter().any(|one| one.module.name() == needs)
    }
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.module.name()).field(&self.loading).finish()
    }
}

/// The bus that exists without any module.
const CARDS_BUS: &str = "sja1000";
const CARDS_BUS_HELP: &str = "QEMU's CAN bus between the cards, on which a frame takes no time";

/// Adds the options of these modules to a command.
pub fn add_options(command: Command, modules: &'static [Module]) -> Command {
    let buses = modules.iter().filter_map(|module| match module.option {
        Choice::Bus(name) => Some(PossibleValue::new(name).help(module.offers)),
        _ => None,
    });
    let buses: Vec<_> =
        [PossibleValue::new(CARDS_BUS).help(CARDS_BUS_HELP)].into_iter().chain(buses).collect();
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
        Ok(Loading { parameters: format!("card={value}"), cards, ..Loading::default() })
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
