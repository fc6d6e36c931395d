//! The reassembler: comparison with a naive model and with the running kernel, and hostile input.

mod capture;
mod cases;
mod hostile;
mod kernel;
mod naive;
mod overlap;
mod padding;
mod property;
mod start;
mod times;
mod transfer;
