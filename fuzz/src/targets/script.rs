//! A structured input for whole pipelines: a setup, then packets, raw frames, ticks, removals and mutes.

use arbitrary::{Arbitrary, Result, Unstructured};

use super::frames::{Captured, Maker, Packet};
use super::input::{Octets, items};
use super::rig::Setup;

/// Steps of a script that are used.
pub const STEP_COUNT_MAX: usize = 400;

#[derive(Clone, Debug)]
pub enum Step<'a> {
    /// A frame of any octets.
    Raw { link: u8, wait: u8, octets: Octets<'a> },
    /// A packet of a conversation.
    Packet(Packet<'a>),
    /// The frame of a step before, counted back, captured again.
    Again { back: u8, wait: u8 },
    /// Time passes without a frame.
    Advance { wait: u8 },
    /// The caller ends a flow.
    Remove { number: u8 },
    /// The sink mutes the flow of the next callback.
    Mute,
    /// The sink wants no more of the next direction with an event.
    Stop,
}

/// The octet with which a raw frame begins.
pub const RAW: u8 = 0;

impl<'a> Arbitrary<'a> for Step<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(match u8::arbitrary(u)? % 16 {
            RAW | 1 => {
                let (link, wait) = Arbitrary::arbitrary(u)?;
                Self::Raw { link, wait, octets: Octets::arbitrary(u)? }
            }
            2..11 => Self::Packet(Packet::arbitrary(u)?),
            11 => {
                let (back, wait) = Arbitrary::arbitrary(u)?;
                Self::Again { back, wait }
            }
            12 => Self::Advance { wait: u8::arbitrary(u)? },
            13 => Self::Remove { number: u8::arbitrary(u)? },
            14 => Self::Mute,
            _ => Self::Stop,
        })
    }
}

#[derive(Clone, Debug)]
pub struct Script<'a> {
    pub setup: Setup,
    pub steps: Vec<Step<'a>>,
}

impl<'a> Arbitrary<'a> for Script<'a> {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        Ok(Self { setup: Setup::arbitrary(u)?, steps: items(u, STEP_COUNT_MAX)? })
    }
}

/// Makes the frames of steps.
#[derive(Default)]
pub struct Player {
    maker: Maker,
    /// Frames so far.
    played: Vec<Captured>,
}

impl Player {
    pub fn wait(&mut self, wait: u8) -> flowgauge::base::Timestamp {
        self.maker.wait(wait)
    }

    /// The frames of a step; none of a step of another kind.
    pub fn frames(&mut self, step: &Step<'_>) -> &[Captured] {
        let before = self.played.len();
        match step {
            Step::Raw { link, wait, octets } => self.played.push(self.maker.raw(*link, *wait, octets.0)),
            Step::Packet(packet) => self.played.extend(self.maker.packet(packet)),
            Step::Again { back, wait } => {
                let timestamp = self.maker.wait(*wait);
                if let Some(frame) = self.played.iter().rev().nth(usize::from(*back)).cloned() {
                    self.played.push(Captured { timestamp, ..frame });
                }
            }
            _ => {}
        }
        &self.played[before..]
    }
}

/// All frames of a script, without its other steps.
pub fn frames(steps: &[Step<'_>]) -> Vec<Captured> {
    let mut player = Player::default();
    for step in steps {
        player.frames(step);
    }
    player.played
}
