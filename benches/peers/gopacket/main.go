// Command gopacket does the work of the rows with gopacket and measures its time.
//
// The runner starts it, sends one command per line, and reads one line as the answer:
//
//	open WORK FILE FLOWS   creates the state of a row; FILE contains frames, each after its length in four octets
//	run COUNT              runs COUNT steps; the answer is their duration in nanoseconds
//	check                  the answer is the count of the row
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"os"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/reassembly"
)

// Offset of the sequence number in the frames of the runner: Ethernet, IPv4 and TCP without options.
const seqOffset = 38

type work interface {
	step()
	count() uint64
}

// decoder reads frames without allocation, as the documentation of gopacket recommends.
type decoder struct {
	ethernet layers.Ethernet
	ip       layers.IPv4
	tcp      layers.TCP
	parser   *gopacket.DecodingLayerParser
	found    []gopacket.LayerType
}

func newDecoder() *decoder {
	d := &decoder{}
	d.parser = gopacket.NewDecodingLayerParser(layers.LayerTypeEthernet, &d.ethernet, &d.ip, &d.tcp)
	// The payload of TCP is not decoded.
	d.parser.IgnoreUnsupported = true
	return d
}

// key is a five-tuple with sorted endpoints.
type key struct{ network, transport gopacket.Flow }

func (d *decoder) decode(frame []byte) key {
	if err := d.parser.DecodeLayers(frame, &d.found); err != nil {
		panic(err)
	}
	k := key{d.ip.NetworkFlow(), d.tcp.TransportFlow()}
	source, destination := k.network.Endpoints()
	if destination.LessThan(source) {
		k = key{k.network.Reverse(), k.transport.Reverse()}
	}
	return k
}

type extract struct {
	*decoder
	frame []byte
	last  key
	done  uint64
}

func (w *extract) step()         { w.last = w.decode(w.frame); w.done++ }
func (w *extract) count() uint64 { return w.done }

type flow struct {
	packets, octets uint64
	first, last     int64
}

// track looks up the flow of each packet in a map and counts the packet, because gopacket has no flow table.
type track struct {
	*decoder
	frames  [][]byte
	flows   map[key]*flow
	next    int
	round   uint32
	now     int64
	inOrder bool
}

func (w *track) step() {
	frame := w.frames[w.next]
	if w.inOrder {
		binary.BigEndian.PutUint32(frame[seqOffset:], 1000+w.round)
		w.now += 700
	}
	w.next++
	if w.next == len(w.frames) {
		w.next = 0
		w.round++
	}
	k := w.decode(frame)
	f := w.flows[k]
	if f == nil {
		f = &flow{first: w.now}
		w.flows[k] = f
	}
	f.packets++
	f.octets += uint64(len(frame))
	f.last = w.now
}

func (w *track) count() uint64 {
	var packets uint64
	for _, f := range w.flows {
		packets += f.packets
	}
	return packets
}

// stream counts the octets delivered in order.
type stream struct{ octets uint64 }

func (s *stream) Accept(_ *layers.TCP, _ gopacket.CaptureInfo, _ reassembly.TCPFlowDirection, _ reassembly.Sequence, start *bool, _ reassembly.AssemblerContext) bool {
	*start = true
	return true
}

func (s *stream) ReassembledSG(sg reassembly.ScatterGather, _ reassembly.AssemblerContext) {
	length, _ := sg.Lengths()
	s.octets += uint64(length)
}

func (s *stream) ReassemblyComplete(reassembly.AssemblerContext) bool { return true }

type factory struct{ stream *stream }

func (f factory) New(_, _ gopacket.Flow, _ *layers.TCP, _ reassembly.AssemblerContext) reassembly.Stream {
	return f.stream
}

type context gopacket.CaptureInfo

func (c *context) GetCaptureInfo() gopacket.CaptureInfo { return gopacket.CaptureInfo(*c) }

// assemble feeds segments that were decoded in advance, either in order or with each two exchanged.
type assemble struct {
	*decoder
	assembler *reassembly.Assembler
	stream    *stream
	context   *context
	network   gopacket.Flow
	payload   []byte
	seq       uint32
	order     []uint32
}

func newAssemble(frame []byte, order []uint32) *assemble {
	w := &assemble{decoder: newDecoder(), stream: &stream{}, context: &context{}, order: order}
	w.assembler = reassembly.NewAssembler(reassembly.NewStreamPool(factory{w.stream}))
	w.context.Timestamp = time.Unix(1000, 0)
	w.decode(frame)
	w.network = w.ip.NetworkFlow()
	w.payload = make([]byte, 1500)
	w.tcp.BaseLayer.Payload = w.payload
	// The first segment defines the start of the stream.
	w.feed(0)
	w.seq = 1500
	w.stream.octets = 0
	return w
}

func (w *assemble) feed(seq uint32) {
	w.tcp.Seq = seq
	w.assembler.AssembleWithContext(w.network, &w.tcp, w.context)
}

func (w *assemble) step() {
	for _, position := range w.order {
		w.feed(w.seq + position*1500)
	}
	w.seq += uint32(len(w.order)) * 1500
}

func (w *assemble) count() uint64 { return w.stream.octets }

func readFrames(path string) [][]byte {
	data, err := os.ReadFile(path)
	if err != nil {
		panic(err)
	}
	var frames [][]byte
	for len(data) > 0 {
		length := binary.BigEndian.Uint32(data)
		frames = append(frames, data[4:4+length])
		data = data[4+length:]
	}
	return frames
}

func open(name string, frames [][]byte, flows int) work {
	switch name {
	case "extract":
		return &extract{decoder: newDecoder(), frame: frames[0]}
	case "track", "track_in_order":
		w := &track{decoder: newDecoder(), frames: frames, flows: make(map[key]*flow), inOrder: name == "track_in_order"}
		for i := 0; i < flows; i++ {
			w.step()
		}
		return w
	case "assemble_in_order":
		return newAssemble(frames[0], []uint32{0})
	case "assemble_out_of_order":
		return newAssemble(frames[0], []uint32{1, 0})
	}
	panic("unknown work " + name)
}

func main() {
	var current work
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var name, path string
		var flows, steps int
		line := in.Text()
		if n, _ := fmt.Sscanf(line, "open %s %s %d", &name, &path, &flows); n == 3 {
			current = open(name, readFrames(path), flows)
			fmt.Println("opened")
		} else if n, _ := fmt.Sscanf(line, "run %d", &steps); n == 1 {
			started := time.Now()
			for i := 0; i < steps; i++ {
				current.step()
			}
			fmt.Println(time.Since(started).Nanoseconds())
		} else {
			fmt.Println(current.count())
		}
	}
}
