//! Every study, as its file has it.

macro_rules! files {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../../carried/studies/", $name, ".toml")))),*]
    };
}

/// Name and text, in the order of the papers.
pub static FILES: &[(&str, &str)] = files! {
    "2010-fig5" "2010-fig6" "2010-fig7" "2010-fig9" "2010-fig12"
    "2011-fig4" "2011-fig5" "2011-fig6" "2011-fig7" "2011-fig8" "2011-fig9" "2011-fig10" "2011-fig11" "2011-fig12"
    "2011-fig13" "2011-fig14" "2011-fig15" "2011-matrix" "irq-priority"
    "2014-fig4.1" "2014-fig4.2" "2014-fig4.2-wire" "2014-fig4.2-canchar" "2014-fig4.3" "2014-fig4.4"
    "payload" "payload-fd"
    "wccd-table1" "wccd-fig3" "wccd-fig4" "wccd-fig5" "wccd-fig7" "wccd-table2"
    "probe-gateways" "probe-realtime" "bench-syscalls" "bench-rules"
};
