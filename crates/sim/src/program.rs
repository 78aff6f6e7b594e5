//! The program around the runs: threads, progress bar, output.

pub mod hunt;
pub mod jobs;
pub mod output;

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};

/// Does `work` for every number below `n` on so many threads, by default on all cores; `take` gets
/// each result when it is ready.
pub fn on_threads<T: Send>(
    n_threads: Option<usize>,
    n: usize,
    work: impl Fn(usize) -> T + Sync,
    mut take: impl FnMut(usize, T),
) {
    let (next, (sender, receiver)) = (AtomicUsize::new(0), mpsc::channel());
    let bar = ProgressBar::new(n as u64);
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {per_sec}  {eta} left");
    bar.set_style(style.expect("the template is valid"));
    thread::scope(|scope| {
        let n_cores = thread::available_parallelism().map_or(1, NonZero::get);
        for _ in 0..n_threads.unwrap_or(n_cores) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            let numbers = move || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|at| *at < n);
            scope.spawn(move || {
                while let Some(number) = numbers() {
                    sender.send((number, work(number))).expect("the receiver outlives the threads");
                }
            });
        }
        drop(sender);
        for (number, result) in receiver {
            bar.inc(1);
            take(number, result);
        }
    });
    bar.finish_and_clear();
}
