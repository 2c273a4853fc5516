//! The stages of a frame's way, and which functions of the kernel belong to which.

use std::fmt;

/// What an instruction on a frame's way was executed for. The numbers are those of carried/analyzer/analyzer.c.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Interrupt = 1,
    Driver,
    SoftInterrupt,
    CanCore,
    Socket,
    Scheduler,
    SystemCall,
    /// The gateway's own program, or can-gw.
    Gateway,
    /// Other programs, and the kernel on their behalf.
    Load,
    /// The meter, and the kernel on its behalf.
    Instrument,
    Idle,
}

/// The number of stages.
pub const STAGES: usize = 11;

/// Every stage, in the order of their numbers.
pub const ALL: [Stage; STAGES] = [
    Stage::Interrupt,
    Stage::Driver,
    Stage::SoftInterrupt,
    Stage::CanCore,
    Stage::Socket,
    Stage::Scheduler,
    Stage::SystemCall,
    Stage::Gateway,
    Stage::Load,
    Stage::Instrument,
    Stage::Idle,
];

impl Stage {
    /// The stage's word in tables and result files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Driver => "driver",
            Self::SoftInterrupt => "soft interrupt",
            Self::CanCore => "CAN core",
            Self::Socket => "socket",
            Self::Scheduler => "scheduler",
            Self::SystemCall => "system call",
            Self::Gateway => "gateway's own",
            Self::Load => "load",
            Self::Instrument => "instrument",
            Self::Idle => "idle",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Flags of functions, as in carried/analyzer/analyzer.c.
pub const ASIDE: u32 = 1;
pub const SWITCHES: u32 = 2;
pub const ENTERS: u32 = 4;
pub const FAULTS: u32 = 8;
pub const BEGINS: u32 = 16;
pub const KERNEL_ENTRY: u32 = 32;
pub const BREAKS_OFF: u32 = 64;

/// The vectors of an arm64 kernel's symbol `vectors`, [`VECTOR_BYTES`] each: for each state that the processor comes from,
/// one for each kind (Arm Architecture Reference Manual, D1.3.1). Each is a function here, by the name of what it branches to.
pub const VECTORS_FROM: [&str; 4] = ["el1t_64", "el1h_64", "el0t_64", "el0t_32"];
pub const VECTORS_OF: [&str; 4] = ["sync", "irq", "fiq", "error"];
pub const VECTOR_BYTES: u64 = 128;

/// Functions of the kernel: a name, or the beginning of names when it ends with `*`; their stage and flags. The first
/// row that fits decides. A function without a row belongs to the stage of its caller.
pub const FUNCTIONS: &[(&str, Stage, u32)] = &[
    ("asm_exc_page_fault", Stage::SystemCall, BREAKS_OFF | FAULTS | KERNEL_ENTRY),
    ("asm_exc_*", Stage::SystemCall, KERNEL_ENTRY),
    ("entry_SYSCALL_64", Stage::SystemCall, ENTERS | KERNEL_ENTRY),
    ("entry_SYSCALL_64*", Stage::SystemCall, ENTERS),
    ("do_syscall_64", Stage::SystemCall, 0),
    ("__x64_sys_*", Stage::SystemCall, 0),
    ("__se_sys_*", Stage::SystemCall, 0),
    ("__do_sys_*", Stage::SystemCall, 0),
    ("vectors:el0t_64_sync", Stage::SystemCall, BREAKS_OFF | KERNEL_ENTRY),
    ("vectors:el1h_64_sync", Stage::SystemCall, BREAKS_OFF | KERNEL_ENTRY),
    ("vectors:el0t_64_irq", Stage::Interrupt, ASIDE | KERNEL_ENTRY),
    ("vectors:el1h_64_irq", Stage::Interrupt, ASIDE | KERNEL_ENTRY),
    ("vectors:*", Stage::SystemCall, KERNEL_ENTRY),
    ("el0t_64_sync", Stage::SystemCall, ENTERS),
    ("el1h_64_sync", Stage::SystemCall, 0),
    ("do_mem_abort", Stage::SystemCall, FAULTS),
    ("do_el0_svc", Stage::SystemCall, 0),
    ("invoke_syscall", Stage::SystemCall, 0),
    ("__arm64_sys_*", Stage::SystemCall, 0),
    ("el0t_64_irq*", Stage::Interrupt, ASIDE),
    ("el1h_64_irq*", Stage::Interrupt, ASIDE),
    ("el0_interrupt", Stage::Interrupt, ASIDE),
    ("el1_interrupt", Stage::Interrupt, ASIDE),
    ("gic_handle_irq", Stage::Interrupt, ASIDE),
    ("handle_percpu_devid_irq", Stage::Interrupt, ASIDE),
    ("handle_percpu_devid_fasteoi_ipi", Stage::Interrupt, ASIDE),
    ("ipi_handler", Stage::Interrupt, ASIDE),
    ("asm_common_interrupt", Stage::Interrupt, ASIDE | KERNEL_ENTRY),
    ("asm_sysvec_*", Stage::Interrupt, ASIDE | KERNEL_ENTRY),
    ("common_interrupt", Stage::Interrupt, ASIDE),
    ("__common_interrupt", Stage::Interrupt, ASIDE),
    ("sysvec_*", Stage::Interrupt, ASIDE),
    ("__sysvec_*", Stage::Interrupt, ASIDE),
    ("handle_edge_irq", Stage::Interrupt, ASIDE),
    ("handle_fasteoi_irq", Stage::Interrupt, ASIDE),
    ("handle_level_irq", Stage::Interrupt, ASIDE),
    ("handle_irq_event*", Stage::Interrupt, ASIDE),
    ("__handle_irq_event_percpu", Stage::Interrupt, ASIDE),
    ("irq_enter_rcu", Stage::Interrupt, ASIDE),
    ("irq_exit_rcu", Stage::Interrupt, ASIDE),
    ("__irq_exit_rcu", Stage::Interrupt, ASIDE),
    ("hrtimer_interrupt", Stage::Interrupt, ASIDE),
    ("__hrtimer_run_queues", Stage::Interrupt, ASIDE),
    ("irq_work_run*", Stage::Interrupt, ASIDE),
    ("irq_thread", Stage::Interrupt, ASIDE),
    ("irq_thread_fn", Stage::Interrupt, ASIDE),
    ("irq_forced_thread_fn", Stage::Interrupt, ASIDE),
    ("handle_softirqs", Stage::SoftInterrupt, ASIDE),
    ("__do_softirq", Stage::SoftInterrupt, ASIDE),
    ("run_ksoftirqd", Stage::SoftInterrupt, ASIDE),
    ("net_rx_action", Stage::SoftInterrupt, ASIDE),
    ("net_tx_action", Stage::SoftInterrupt, ASIDE),
    ("napi_threaded_poll*", Stage::SoftInterrupt, ASIDE),
    ("__napi_poll*", Stage::SoftInterrupt, ASIDE),
    ("process_backlog", Stage::SoftInterrupt, ASIDE),
    ("__netif_receive_skb*", Stage::SoftInterrupt, ASIDE),
    ("netif_receive_skb*", Stage::SoftInterrupt, ASIDE),
    ("tasklet_action*", Stage::SoftInterrupt, ASIDE),
    ("tasklet_hi_action", Stage::SoftInterrupt, ASIDE),
    ("run_timer_softirq", Stage::SoftInterrupt, ASIDE),
    ("rcu_core*", Stage::SoftInterrupt, ASIDE),
    ("ret_from_fork_asm", Stage::Scheduler, BEGINS),
    ("ret_from_fork", Stage::Scheduler, BEGINS),
    ("finish_task_switch*", Stage::Scheduler, SWITCHES),
    ("__schedule", Stage::Scheduler, 0),
    ("schedule*", Stage::Scheduler, 0),
    ("preempt_schedule*", Stage::Scheduler, 0),
    ("__switch_to*", Stage::Scheduler, 0),
    ("cpu_switch_to", Stage::Scheduler, 0),
    ("try_to_wake_up", Stage::Scheduler, 0),
    ("ttwu_*", Stage::Scheduler, 0),
    ("sched_ttwu_pending", Stage::Scheduler, 0),
    ("wake_up_*", Stage::Scheduler, 0),
    ("__wake_up*", Stage::Scheduler, 0),
    ("default_wake_function", Stage::Scheduler, 0),
    ("autoremove_wake_function", Stage::Scheduler, 0),
    ("pollwake", Stage::Scheduler, 0),
    ("do_idle", Stage::Idle, 0),
    ("cpu_startup_entry", Stage::Idle, 0),
    ("default_idle*", Stage::Idle, 0),
    ("arch_cpu_idle*", Stage::Idle, 0),
    ("cpu_do_idle", Stage::Idle, 0),
    ("cpuidle_*", Stage::Idle, 0),
    ("pv_native_safe_halt", Stage::Idle, 0),
    ("tick_nohz_idle_*", Stage::Idle, 0),
    ("sock_*", Stage::Socket, 0),
    ("__sock_*", Stage::Socket, 0),
    ("__sys_send*", Stage::Socket, 0),
    ("__sys_recv*", Stage::Socket, 0),
    ("___sys_*", Stage::Socket, 0),
    ("____sys_*", Stage::Socket, 0),
    ("datagram_poll*", Stage::Socket, 0),
    ("skb_recv_datagram", Stage::Socket, 0),
    ("__skb_recv_datagram", Stage::Socket, 0),
    ("__skb_wait_for_more_packets", Stage::Socket, 0),
    ("packet_*", Stage::Socket, 0),
    ("tpacket_*", Stage::Socket, 0),
];

/// Modules of the kernel: every function of the module belongs to the stage; [`FUNCTIONS`] applies to the kernel itself only.
pub const MODULES: &[(&str, Stage)] = &[
    ("can", Stage::CanCore),
    ("can_raw", Stage::Socket),
    ("can_bcm", Stage::Socket),
    ("af_packet", Stage::Socket),
    ("can_gw", Stage::Gateway),
    ("canbare", Stage::Gateway),
    ("can_dev", Stage::Driver),
    ("sja1000", Stage::Driver),
    ("kvaser_pci", Stage::Driver),
    ("ctucanfd", Stage::Driver),
    ("ctucanfd_pci", Stage::Driver),
    ("canwire", Stage::Driver),
    ("canchar", Stage::Driver),
    ("canprobe", Stage::Instrument),
    ("vcan", Stage::Driver),
    ("vxcan", Stage::Driver),
];

/// What a mark of the analyzer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A driver begins to send a frame.
    Transmit,
    /// A bus on which a frame takes time hands a frame over at its end.
    Delivery,
    /// A driver gives its chip a command: of a transmit function the one to send.
    Command,
}

/// The marked functions: name and meaning. An event has the number of its row, counted from 1.
pub const MARKS: &[(&str, Mark)] = &[
    ("sja1000_start_xmit", Mark::Transmit),
    ("ctucan_start_xmit", Mark::Transmit),
    ("cw_xmit", Mark::Transmit),
    ("vcan_tx", Mark::Transmit),
    ("vxcan_xmit", Mark::Transmit),
    ("canchar_send_at_once", Mark::Transmit),
    ("canchar_push", Mark::Transmit),
    ("cw_wire_timer", Mark::Delivery),
    ("sja1000_write_cmdreg", Mark::Command),
];
