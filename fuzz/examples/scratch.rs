use flowgauge_fuzz::targets::*;
use flowgauge_fuzz::targets::rig::Rig;
fn main() {
    let data = std::fs::read(std::env::args().nth(1).unwrap()).unwrap();
    let script: script::Script<'_> = input::structured(&data).unwrap();
    let setup = script.setup.roomy().shardable();
    for batched in [false, true] {
        let budget = setup.budget();
        let mut p = setup.stream_pipeline::<observer::Log>(&budget).unwrap();
        let mut sink = observer::Observer::keeping();
        let frames = script::frames(&script.steps);
        if batched {
            let mut b = flowgauge::base::FrameBatch::new();
            for f in &frames { b.push(&f.frame()); }
            Rig::batch(&mut p, &b, &mut sink);
        } else {
            for f in &frames { Rig::frame(&mut p, &f.frame(), &mut sink); println!("{:?}", Rig::<observer::Observer>::stats(&p).streams); }
        }
        Rig::finish(&mut p, &mut sink);
        println!("{:?}", Rig::<observer::Observer>::stats(&p).streams);
        for (r, l) in sink.ended { println!("{} {:#?}", r.key, l); }
    }
}
