//! Random rules and frames that meet them.

use canter_io::Frame;
use std::fmt::Write;

/// xorshift64*: a seed says all.
pub struct Random(pub u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 33) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    fn hex(&mut self, bytes: u64) -> String {
        (0..bytes).map(|_| format!("{:02X}", self.below(256))).collect()
    }

    /// A frame among those that the filters below know.
    pub fn frame(&mut self) -> Frame {
        let id = self.pick(&[
            "100", "101", "102", "10F", "123", "200", "7FF", "00000100", "00000123", "12345678", "1FFFFFFF",
        ]);
        let text = match self.below(10) {
            0 => format!("{id}#R{}", self.below(9)),
            1 => format!("{id}#{}_{:X}", self.hex(8), 9 + self.below(7)),
            2..=5 => {
                let len = self.below(9);
                format!("{id}#{}", self.hex(len))
            }
            _ => {
                let len = self.pick(&[0, 1, 7, 8, 12, 16, 20, 24, 32, 48, 64]);
                format!("{id}##{}{}", self.below(4), self.hex(len))
            }
        };
        text.parse().unwrap()
    }

    fn change(&mut self, fd: bool, rule: &mut String) {
        let most = if fd { 64 } else { 8 };
        for key in ["and", "or", "xor", "set"] {
            if !self.chance(30) {
                continue;
            }
            let mut parts = Vec::new();
            if self.chance(50) {
                let id = self.pick(&[
                    0u32,
                    0x1,
                    0x7ff,
                    0x8000_0001,
                    0xffff_fff0,
                    0xc000_07ff,
                    0x4000_0000,
                    0x9fff_ffff,
                ]);
                let id = if key == "and" { id } else { id & !0x2000_0000 };
                let id = if key == "set" && id & 0x8000_0000 == 0 { id & 0xc000_07ff } else { id };
                parts.push(format!("id = 0x{id:X}"));
            }
            if self.chance(40) {
                let len = if key == "set" && !fd { self.below(16) } else { self.below(most + 1) };
                parts.push(format!("len = {len}"));
            }
            if fd && self.chance(40) {
                parts.push(format!("flags = {}", self.below(4)));
            }
            if parts.is_empty() || self.chance(50) {
                let len = 1 + self.below(most);
                parts.push(format!("data = \"{}\"", self.hex(len)));
            }
            writeln!(rule, "{key} = {{ {} }}", parts.join(", ")).unwrap();
        }
        let span = |random: &mut Self| {
            let most = most as i64;
            let mut place = || random.below(2 * most as u64) as i64 - most;
            format!("from = {}, to = {}, result = {}", place(), place(), place())
        };
        if self.chance(40) {
            let span = span(self);
            writeln!(rule, "xor-checksum = {{ {span}, init = {} }}", self.below(256)).unwrap();
        }
        if self.chance(40) {
            let profile = match self.below(4) {
                0 => String::new(),
                1 => format!(", profile = \"1u8\", profile-data = \"{}\"", self.hex(1)),
                2 => format!(", profile = \"16u8\", profile-data = \"{}\"", self.hex(16)),
                _ => ", profile = \"sffid-xor\"".to_owned(),
            };
            let span = span(self);
            let [polynomial, init, last] = [(); 3].map(|()| self.below(256));
            writeln!(
                rule,
                "crc8 = {{ {span}, polynomial = {polynomial}, init = {init}, final-xor = {last}{profile} }}"
            )
            .unwrap();
        }
    }

    /// A route whose rules all match, or one whose filters have no frame in common.
    pub fn route(&mut self) -> (String, bool) {
        let apart = self.chance(50);
        let mut text = format!(
            "[[route]]\nfrom = \"vx1\"\nto = \"vx2\"\nmatch = \"{}\"\n",
            if apart { "first" } else { "all" }
        );
        let disjoint = ["100", "101-10E", "123", "123#R", "00000100-000001FF", "12345678", "200-7FF"];
        let any = [
            "100",
            "~100",
            "100:7F0",
            "100~7F0",
            "12345678",
            "00000100-000001FF",
            "000-7FF",
            "123#R",
            "0:0",
            "~12345678",
            "123:7FF",
        ];
        for at in 0..1 + self.below(5) {
            let fd = self.chance(50);
            let filter = if apart { disjoint[at as usize] } else { self.pick(&any) };
            writeln!(
                text,
                "[[route.rule]]\nframes = \"{}\"\nfilter = [\"{filter}\"]",
                if fd { "fd" } else { "classic" }
            )
            .unwrap();
            self.change(fd, &mut text);
        }
        (text, apart)
    }
}
