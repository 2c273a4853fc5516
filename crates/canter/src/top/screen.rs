//! The terminal: the alternate screen in raw mode, restored at the end of the program and on a panic.

use super::view::{Line, Size, Style, View};
use canter_cli::failure::Exit;
use crossterm::{
    cursor::{Hide, MoveTo, Show},
    event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
    execute, queue,
    style::{Attribute, Print, SetAttribute},
    terminal::{
        self, BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap,
        EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    },
};
use signal_hook::{consts::SIGHUP, iterator::Signals};
use std::{
    io::{self, Write},
    sync::Once,
    thread,
    time::Duration,
};

/// The terminal while the program uses it.
pub struct Screen;

impl Screen {
    /// Switches the terminal. It is restored when this is dropped, and when the program panics.
    pub fn take() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let next_hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                next_hook(panic);
            }));
        });
        terminal::enable_raw_mode()?;
        let screen = Self; // from here on, drop restores it
        end_with_the_terminal()?;
        execute!(io::stdout(), EnterAlternateScreen, DisableLineWrap, Hide)?;
        Ok(screen)
    }

    /// The size of the terminal.
    pub fn size(&self) -> Size {
        let (columns, lines) = terminal::size().unwrap_or((80, 24));
        Size { lines: lines.into(), columns: columns.into() }
    }

    /// Shows lines; clips those that are wider than the screen.
    pub fn draw(&self, lines: &[Line]) -> io::Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        write_lines(&mut out, lines, self.size().columns)?;
        out.flush()
    }

    /// The next input event, without waiting.
    pub fn event(&self) -> io::Result<Option<Event>> {
        if event::poll(Duration::ZERO)? { event::read().map(Some) } else { Ok(None) }
    }
}

/// Ends the program, in a thread of its own, when the terminal is closed: crossterm reads a closed terminal again and again,
/// and its poll does not return.
fn end_with_the_terminal() -> io::Result<()> {
    let mut signals = Signals::new([SIGHUP])?;
    let wait = move || {
        if signals.forever().next().is_some() {
            restore();
            std::process::exit(Exit::Done as i32);
        }
    };
    thread::Builder::new().name("canter-hangup".to_owned()).spawn(wait).map(drop)
}

fn write_lines(out: &mut impl Write, lines: &[Line], columns: usize) -> io::Result<()> {
    queue!(out, BeginSynchronizedUpdate)?;
    for (at, line) in lines.iter().enumerate() {
        queue!(out, MoveTo(0, at as u16))?;
        let mut room = columns;
        for (style, text) in line {
            let text: String = text.chars().take(room).collect();
            room -= text.chars().count();
            queue!(out, SetAttribute(attribute(*style)), Print(text), SetAttribute(Attribute::Reset))?;
        }
        // Behind a full line the cursor is still on the last character.
        if room > 0 {
            queue!(out, Clear(ClearType::UntilNewLine))?;
        }
    }
    queue!(out, EndSynchronizedUpdate)
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    // An error cannot be reported anywhere.
    let _ =
        execute!(io::stdout(), SetAttribute(Attribute::Reset), Show, EnableLineWrap, LeaveAlternateScreen);
    let _ = terminal::disable_raw_mode();
}

fn attribute(style: Style) -> Attribute {
    match style {
        Style::Plain => Attribute::NormalIntensity,
        Style::Head => Attribute::Reverse,
        Style::Bus | Style::Changed => Attribute::Bold,
        Style::Alarm => Attribute::Underlined,
    }
}

/// The action that a key requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Nothing,
    /// The view has changed.
    Redraw,
    ResetCounts,
    Quit,
}

/// Applies a key to the view; returns the action for the program.
pub fn press(view: &mut View, event: &Event, rows: usize, page: usize) -> Action {
    let Event::Key(KeyEvent { code, modifiers, kind, .. }) = event else { return Action::Redraw };
    if *kind == KeyEventKind::Release {
        return Action::Nothing;
    }
    if modifiers.contains(KeyModifiers::CONTROL) && matches!(code, KeyCode::Char('c' | 'd')) {
        return Action::Quit;
    }
    if view.typing {
        return type_filter(view, *code);
    }
    match code {
        KeyCode::Char('q') => return Action::Quit,
        KeyCode::Char('z') => return Action::ResetCounts,
        KeyCode::Char(' ' | 'p') => view.paused = !view.paused,
        KeyCode::Char('s') => view.sort = view.sort.next(),
        KeyCode::Char('r') => view.reverse = !view.reverse,
        KeyCode::Char('v') => view.names_only = !view.names_only,
        KeyCode::Char('b') => view.buses = view.buses.next(),
        KeyCode::Char('/') => view.typing = true,
        KeyCode::Esc if view.filter.is_empty() => return Action::Quit,
        KeyCode::Esc => view.filter.clear(),
        KeyCode::Down | KeyCode::Char('j') => view.first += 1,
        KeyCode::Up | KeyCode::Char('k') => view.first = view.first.saturating_sub(1),
        KeyCode::PageDown => view.first += page,
        KeyCode::PageUp => view.first = view.first.saturating_sub(page),
        KeyCode::Home => view.first = 0,
        KeyCode::End => view.first = rows,
        _ => return Action::Nothing,
    }
    view.first = view.first.min(rows.saturating_sub(page));
    Action::Redraw
}

/// The longest filter: no name of an interface, a message or a signal is longer.
const FILTER_CHARACTERS_MAX: usize = 128;

fn type_filter(view: &mut View, code: KeyCode) -> Action {
    match code {
        KeyCode::Enter => view.typing = false,
        KeyCode::Esc => (view.typing, view.filter) = (false, String::new()),
        KeyCode::Backspace => {
            view.filter.pop();
        }
        KeyCode::Char(letter) if view.filter.chars().count() < FILTER_CHARACTERS_MAX => {
            view.filter.push(letter)
        }
        _ => return Action::Nothing,
    }
    view.first = 0;
    Action::Redraw
}

#[cfg(test)]
mod tests {
    use super::{
        super::view::{Buses, Sort},
        *,
    };

    fn type_keys(view: &mut View, keys: &str) -> Vec<Action> {
        let press = |key| {
            let code = match key {
                '\n' => KeyCode::Enter,
                '\x1b' => KeyCode::Esc,
                '\x08' => KeyCode::Backspace,
                'v' => KeyCode::PageDown,
                other => KeyCode::Char(other),
            };
            press(view, &Event::Key(KeyEvent::from(code)), 100, 10)
        };
        keys.chars().map(press).collect()
    }

    #[test]
    fn a_full_line_keeps_its_last_character() {
        let lines = ["1234", "12345", "123456"].map(|text| vec![(Style::Plain, text.to_owned())]);
        let mut out = Vec::new();
        write_lines(&mut out, &lines, 5).unwrap();
        let out = String::from_utf8(out).unwrap();
        let cleared: Vec<bool> =
            out.split("\x1b[0m").skip(1).map(|rest| rest.starts_with("\x1b[K")).collect();
        assert_eq!(cleared, [true, false, false], "{out:?}");
    }

    #[test]
    fn keys_change_the_view_and_q_ends() {
        let mut view = View::default();
        assert_eq!(type_keys(&mut view, "sr vjjq").last(), Some(&Action::Quit));
        assert_eq!((view.sort, view.reverse, view.paused, view.first), (Sort::Id, true, true, 12));
        type_keys(&mut view, "vvvvvvvvvvvvk");
        assert_eq!(view.first, 89, "the last page ends with the last row");
        assert_eq!(type_keys(&mut view, "z"), [Action::ResetCounts]);
        type_keys(&mut view, "bb");
        assert_eq!(view.buses, Buses::Hidden);
    }

    #[test]
    fn while_typing_a_filter_q_is_a_letter() {
        let mut view = View::default();
        type_keys(&mut view, "/q1x\x08\n");
        assert_eq!((view.filter.as_str(), view.typing), ("q1", false));
        assert_eq!(type_keys(&mut view, "\x1b\x1b"), [Action::Redraw, Action::Quit]);
    }
}
