//! A structured input for whole pipelines: a setup, then packets, raw frames, clock advances, removals and mutes.

use arbitrary::{Arbitrary, Result, Unstructured};

use super::frames::{Captured, Maker, Packet};
use super::input::{Octets, items};
use super::rig::Setup;

/// Maximum number of steps of a script.
pub const STEP_COUNT_MAX: usize = 400;

#[derive(Clone, Debug)]
pub enum Step<'a> {
    /// A frame of arbitrary octets.
    Raw { link: u8, wait: u8, octets: Octets<'a> },
    /// A packet of a conversation.
    Packet(Packet<'a>),
    /// A duplicate of the frame of an earlier step, by distance.
    Again { back: u8, wait: u8 },
    /// The time advances without a frame.
    Advance { wait: u8 },
    /// The caller removes a flow.
    Remove { number: u8 },
    /// The sink mutes the flow of the next callback.
    Mute,
    /// The sink stops the direction of the next event.
    Stop,
}

/// First octet of the step of a raw frame.
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

/// Creates the frames of steps.
#[derive(Default)]
pub struct Player {
    maker: Maker,
    /// Frames created so far.
    played: Vec<Captured>,
}

impl Player {
    pub fn wait(&mut self, wait: u8) -> flowgauge::base::Timestamp {
        self.maker.wait(wait)
    }

    /// Returns the frames of a step, or none for a step of another kind.
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

/// Returns all frames of a script and ignores its other steps.
pub fn frames(steps: &[Step<'_>]) -> Vec<Captured> {
    let mut player = Player::default();
    for step in steps {
        player.frames(step);
    }
    player.played
}
