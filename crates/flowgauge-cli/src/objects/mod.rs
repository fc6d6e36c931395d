//! `flowgauge export-objects`: writes the objects that application protocols transfer.

mod args;
mod byteranges;
mod decode;
mod entries;
mod flow;
mod folder;
mod name;
mod ranges;
mod row;

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::time::Instant;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flowgauge::export::Style;
use flowgauge::pipeline::boxed;
use flowgauge::protocols::tls::CertificateChain;
use flowgauge::protocols::{tftp, tls};
use flowgauge::session::{Fault, Piece, PieceContent};
use flowgauge::transaction::coding::Coding;
use flowgauge::transaction::{Content as Transferred, Decoding, DecodingCredit, Lack, Transaction};
use flowgauge::{
    EndReason, Flow, FlowView, Interest, KeyPolicy, Message, MessageMeta, ReassemblerConfig, Role,
    SessionEvent, Sessions, Sink, Standard, TransactionSink, Transactions,
};

pub(crate) use args::ObjectsArgs;
use args::{Format, Kind};
use byteranges::Part;
use flow::{FlowFacts, Incoming, Key, State};
use folder::{Content, Folder, Limits};
use ranges::{Entity, Gaps, RANGE_LEN, Range, Ranges, Texts};
use row::{ObjectRow, Writer};

use crate::args::{Pages, Tunnels, check, parse_filter};
use crate::bound::{Bound, OUTPUT_PER_OCTET};
use crate::choice::Choice;
use crate::console::{Console, Failure};
use crate::human::plural;
use crate::input::Input;

/// Minimum length in octets of data that may be a certificate.
const CERTIFICATE_LEN_MIN: usize = 64;

/// Memory in bytes that the names of certificates may always have, even if there is none.
const CERTIFICATES_MIN: usize = 256 << 10;

/// Part of the memory that the names of certificates may have.
const CERTIFICATES_PART: usize = 16;

/// Part of the memory that is left that the window of a decoder may take. It is not charged.
const WINDOW_PART: u64 = 4;

/// Length in characters of a line of PEM (RFC 7468 section 2).
const PEM_LINE_LEN: usize = 64;

/// Runs the command `flowgauge export-objects`.
pub(crate) fn run(args: &ObjectsArgs, console: &mut Console) -> Result<(), Failure> {
    let started_at = Instant::now();
    let style = args.style.style();
    if args.format == Format::Table && style != Style::default() {
        return Err(Failure::Usage("--time and --nulls require --format ndjson or csv".to_owned()));
    }
    let filter = args.filter.as_deref().map(parse_filter).transpose()?;
    let resources = args.shared.resources();
    let mut key_policy = KeyPolicy::DEFAULT;
    key_policy.decapsulation = Tunnels::Innermost.into();
    let flows =
        args.shared.builder(&resources, filter.as_ref(), Pages::Huge).checksums(args.checksums.into());
    let flows = flows.key_policy(key_policy);
    let mut streams = ReassemblerConfig::default();
    streams.ack_grace = args.grace.ack_grace;
    let builder = flows.clone().streams(streams);
    check::<Sessions<Standard>>(&builder)?;
    let choice = Choice::new(
        &args.community_id,
        filter.as_ref(),
        (&args.files, Some(&args.grace.shift)),
        (&flows, &resources),
    )?;
    let Some(input) = Input::open(&args.files, &resources, console) else { return Ok(()) };
    let input = input.shifted(&args.grace.shift);
    let mut input = input.with_progress(!args.shared.quiet && !io::stdout().is_terminal());
    let mut sink = Transactions::new(ObjectSink::new(choice, args, input.is_stream())?);
    let run = input.run(builder.build(boxed(&mut sink))?, console);
    let mut sink = sink.into_inner();
    sink.write_ranges();
    let ObjectSink { folder, writer, outcome, incomplete_count, cut_count, suppressed_count, .. } = sink;
    // The rows of all files are written, even if another file failed.
    let finished = writer.finish();
    outcome?;
    let mut stats = run?;
    finished?;
    stats.sessions.suppressed_message_count += suppressed_count;
    if folder.omitted_count > 0 {
        let what = plural(folder.omitted_count, "object");
        console.problem(format!("{what} omitted at a limit; raise --max-count or --max-total to write all"));
    }
    if folder.truncated_count > 0 {
        let what = plural(folder.truncated_count, "object");
        console.problem(format!(
            "{what} truncated at a limit; raise --max-size or --max-total to write all octets"
        ));
    }
    if cut_count > 0 {
        let what = plural(cut_count, "object");
        console.problem(format!(
            "{what} cut at a limit of flows, transactions or memory; raise --memory to write all octets"
        ));
    }
    if !args.shared.quiet {
        let objects = plural(folder.count, "object");
        let mut result = format!("{objects} of {} written", plural(folder.len, "octet"));
        if incomplete_count > 0 {
            result.push_str(&format!(", {incomplete_count} not complete"));
        }
        args.summary.write(&stats, &input.stats(), started_at.elapsed(), &result);
    }
    Ok(())
}

/// What a protocol states about an object that ends.
#[derive(Clone, Copy, Debug, Default)]
struct Description<'d> {
    name: Option<&'d str>,
    content_type: Option<&'d str>,
    content_encoding: Option<&'d str>,
    command: Option<&'d str>,
    /// Number of the transaction.
    number: u64,
    is_complete: bool,
    /// True if it ends before its time because memory is short, or its flow has too many transactions.
    is_cut: bool,
    range: Option<Range>,
    /// Range of the whole body if its end may be a range of another response.
    prefix: Option<Range>,
}

/// Names of the files of an object.
#[derive(Clone, Debug)]
struct Names {
    file: String,
    pem_file: Option<String>,
}

impl Names {
    /// Returns the memory in bytes of the names and their digest in a table, of which half may be free.
    fn held_len(&self) -> usize {
        let texts = self.file.capacity() + self.pem_file.as_ref().map_or(0, String::capacity);
        3 * size_of::<([u8; 32], Self)>() + texts
    }
}

/// An object that ended.
struct Ended<'e> {
    key: Key,
    incoming: Incoming,
    description: Description<'e>,
    decoding: Option<Decoding>,
    /// Gaps between the ranges of the object, and their number.
    joined: Option<(Gaps, u64)>,
    /// The object as PEM.
    pem: Option<String>,
    /// The files of the object if it was written before.
    names: Option<Names>,
}

impl Ended<'_> {
    /// Returns the name in the traffic.
    fn name(&self) -> Option<&str> {
        let target = self.incoming.request.target.as_deref();
        self.description.name.or_else(|| target.and_then(name::of_target))
    }

    /// Returns the names of the files of the object with this number.
    fn new_names(&self, number: u64) -> Names {
        let stem = name::stem(number, self.key.kind, self.name());
        let pem_file = self.pem.as_ref().map(|_| format!("{stem}.pem"));
        let file = match self.key.kind.extension() {
            Some(extension) => format!("{stem}.{extension}"),
            None => stem,
        };
        Names { file, pem_file }
    }
}

/// Sink that writes objects as they end.
struct ObjectSink<'a> {
    args: &'a ObjectsArgs,
    choice: Choice,
    started_count: u64,
    folder: Folder,
    writer: Writer,
    bound: Bound,
    /// Certificates that were written, by their digests.
    certificates: HashMap<[u8; 32], Names>,
    certificates_len: usize,
    certificates_max: usize,
    ranges: Ranges,
    /// Memory in bytes of the states of open flows.
    flows_len: usize,
    /// Memory in bytes that the window of a decoder may take.
    window_max: u64,
    /// True if frames arrive in real time, so that rows must not wait in a buffer.
    is_stream: bool,
    incomplete_count: u64,
    cut_count: u64,
    /// Number of objects without a row, and without a file, because of the bound on the output.
    suppressed_count: u64,
    row_count: u64,
    flushed_count: u64,
    outcome: Result<(), Failure>,
}

impl<'a> ObjectSink<'a> {
    fn new(choice: Choice, args: &'a ObjectsArgs, is_stream: bool) -> Result<Self, Failure> {
        let limits =
            Limits { count_max: args.max_count.get(), len_max: args.max_size, total_len_max: args.max_total };
        Ok(Self {
            args,
            choice,
            started_count: 0,
            folder: Folder::new((&args.out, &args.files), limits)?,
            writer: row::writer(args.format, args.style.style()),
            bound: Bound::new(),
            certificates: HashMap::new(),
            certificates_len: 0,
            certificates_max: 0,
            ranges: Ranges::default(),
            flows_len: 0,
            window_max: 0,
            is_stream,
            incomplete_count: 0,
            cut_count: 0,
            suppressed_count: 0,
            row_count: 0,
            flushed_count: 0,
            outcome: Ok(()),
        })
    }

    /// Returns whether objects of a kind are written.
    fn wants(&self, kind: Kind) -> bool {
        self.args.kind.is_empty() || self.args.kind.contains(&kind)
    }

    /// Returns an object that is being received, which is begun if it is not; `None` if it is omitted.
    fn incoming<'s>(
        &mut self,
        (view, state): (&FlowView<'_>, &'s mut State),
        meta: &MessageMeta,
        key: Key,
    ) -> Option<&'s mut Incoming> {
        if state.incoming.get(key).is_none() {
            if let Some(first) = state.excess() {
                self.end(view, state, first, Description { number: first.number, ..Description::default() });
            }
            let begun = self.folder.begin().map(|content| Incoming::new(content, meta, state.request(key)));
            state.begin(key, begun.map(Box::new));
        }
        state.incoming.get_mut(key)?.as_deref_mut()
    }

    /// Adds a piece of an object; a transaction states its end.
    fn piece(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, (kind, piece): (Kind, Piece<'_>)) {
        let sender = if kind == Kind::Mail { Role::Client } else { meta.from };
        let key = Key::new(kind, piece.file, sender);
        match piece.content {
            PieceContent::Octets(octets) => self.octets(flow, meta, key, (piece.offset, octets)),
            PieceContent::Gap(len) => flow.state.skip(key, len),
            PieceContent::End { is_complete } if kind == Kind::Mail => {
                let incoming = flow.state.incoming.get(key).and_then(Option::as_ref);
                // The reply to a chunk may be captured before the chunk.
                flow.state.is_mail_complete =
                    is_complete && incoming.is_some_and(|incoming| incoming.seen_len == piece.offset);
            }
            PieceContent::End { .. } => {}
        }
    }

    /// Adds octets of an object.
    fn octets(
        &mut self,
        flow: &mut Flow<'_, State>,
        meta: &MessageMeta,
        key: Key,
        (offset, octets): (u64, &[u8]),
    ) {
        if octets.is_empty() || self.outcome.is_err() || !self.wants(key.kind) {
            return;
        }
        let Some(incoming) = self.incoming((&flow.view, &mut *flow.state), meta, key) else { return };
        if let Some(missing_len) = offset.checked_sub(incoming.seen_len).filter(|len| *len > 0) {
            incoming.skip(missing_len);
        }
        incoming.extend(meta, octets.len());
        let before = incoming.content.heap_len();
        self.outcome = self.folder.write(&mut incoming.content, octets);
        let grown_len = incoming.content.heap_len() - before;
        flow.state.has_grown(grown_len);
    }

    /// Ends all objects of a flow.
    fn end_all(&mut self, view: &FlowView<'_>, state: &mut State, is_cut: bool) {
        while let Some(key) = state.incoming.first_key() {
            let description = Description { number: key.number, is_cut, ..Description::default() };
            self.end(view, state, key, description);
        }
    }

    /// Ends an object, which is complete as far as it was captured.
    fn end(&mut self, view: &FlowView<'_>, state: &mut State, key: Key, description: Description<'_>) {
        let Some(incoming) = state.take(key) else { return };
        if self.outcome.is_ok() {
            self.outcome = self.complete(view, state, (key, *incoming), description);
        }
    }

    /// Completes an object that ended, or its parts.
    fn complete(
        &mut self,
        view: &FlowView<'_>,
        state: &mut State,
        (key, incoming): (Key, Incoming),
        description: Description<'_>,
    ) -> Result<(), Failure> {
        let has_gaps = incoming.gap_count > 0 || incoming.content.omitted_len > 0;
        let description = Description { is_complete: description.is_complete && !has_gaps, ..description };
        self.cut_count += u64::from(description.is_cut && !description.is_complete);
        let client = if key.sender() == Role::Client { incoming.side } else { incoming.side.other() };
        let flow = FlowFacts::new(view, state, client);
        if !has_gaps && let Some(parts) = self.parts(&incoming, description)? {
            return self.complete_parts((&flow, state), (key, incoming), description, &parts);
        }
        self.complete_body((&flow, state), (key, incoming), description)
    }

    /// Returns the parts of a body of type `multipart/byteranges`; `None` for another body.
    fn parts(
        &mut self,
        incoming: &Incoming,
        description: Description<'_>,
    ) -> Result<Option<Vec<Part>>, Failure> {
        let content_type = description.content_type.filter(|_| incoming.request.is_partial());
        let Some(boundary) = content_type.and_then(byteranges::boundary) else { return Ok(None) };
        let body = self.folder.read(&incoming.content, 0)?;
        Ok(byteranges::parts(body, &boundary, !description.is_complete)?)
    }

    /// Divides a body into its parts, which are ranges.
    fn complete_parts(
        &mut self,
        (flow, state): (&FlowFacts, &mut State),
        (key, incoming): (Key, Incoming),
        description: Description<'_>,
        parts: &[Part],
    ) -> Result<(), Failure> {
        let places = parts.iter().map(|part| (part.position, part.len));
        let contents = self.folder.divide(&incoming.content, places)?;
        for (part, content) in parts.iter().zip(contents) {
            let Some(content) = content else { continue };
            let description = Description {
                content_type: part.content_type.as_deref(),
                is_complete: part.len == part.range.len,
                range: Some(part.range),
                ..description
            };
            let mut incoming = incoming.clone();
            incoming.content = content;
            self.complete_body((flow, state), (key, incoming), description)?;
        }
        Ok(())
    }

    /// Decodes a body if that is requested, and writes it. A range is kept until its entity is complete.
    fn complete_body(
        &mut self,
        (flow, state): (&FlowFacts, &mut State),
        (key, mut incoming): (Key, Incoming),
        description: Description<'_>,
    ) -> Result<(), Failure> {
        let has_gaps = incoming.gap_count > 0 || incoming.content.omitted_len > 0;
        let prefix = description.prefix.filter(|_| incoming.request.may_be_resumed());
        let range = description.range.or(prefix).filter(|range| {
            let len = incoming.content.len;
            let is_whole = range.start == 0 && range.complete_len == Some(len);
            !self.args.no_join_ranges && !has_gaps && len <= range.len && !is_whole
        });
        if let Some(range) = range {
            return self.join((flow, state), (key, incoming), description, range);
        }
        let is_whole = !has_gaps && description.range.is_none_or(|range| range.start == 0);
        let credit = (&mut state.credit, incoming.received_len);
        let decoding = self.decode(&mut incoming.content, description.content_encoding, is_whole, credit)?;
        let ended = Ended { key, incoming, description, decoding, joined: None, pem: None, names: None };
        self.write(flow, &mut state.spent, ended)?;
        Ok(())
    }

    /// Decodes an object if that is requested, and it has a coding. `is_whole` is false if octets of the coded content are
    /// missing before others.
    fn decode(
        &mut self,
        content: &mut Content,
        content_encoding: Option<&str>,
        is_whole: bool,
        (credit, received_len): (&mut DecodingCredit, u64),
    ) -> Result<Option<Decoding>, Failure> {
        let coding = content_encoding.filter(|_| self.args.decode).and_then(Coding::of_field);
        coding
            .map(|coding| match is_whole {
                true => {
                    let pays = &mut |cost| credit.spend(received_len, cost);
                    self.folder.decode(content, (coding, self.window_max), pays)
                }
                false => Ok(Decoding::Incomplete),
            })
            .transpose()
    }

    /// Adds a range to its entity, which is written if it is complete then.
    fn join(
        &mut self,
        (flow, state): (&FlowFacts, &mut State),
        (key, mut incoming): (Key, Incoming),
        description: Description<'_>,
        range: Range,
    ) -> Result<(), Failure> {
        let identity = range.identity(flow, (key, &incoming.request), description.content_encoding);
        while let Some(entity) = self.ranges.excess(&identity) {
            self.write_joined(entity)?;
        }
        let content = std::mem::replace(&mut incoming.content, Content::of(b""));
        let entity = self.ranges.entity(identity, || {
            let Description { name, content_type, content_encoding, number, .. } = description;
            let [name, content_type, content_encoding] =
                [name, content_type, content_encoding].map(|text| text.map(Box::from));
            let texts = Texts { name, content_type, content_encoding };
            let is_prefix = description.range.is_none();
            Entity::new((key, *flow, incoming.clone()), texts, (number, is_prefix), range.complete_len)
        });
        let row_len = if entity.row_len_max == 0 { entity.row_len() } else { RANGE_LEN };
        if !self.bound.permits(&mut state.spent, incoming.received_len, row_len) {
            self.suppressed_count += 1;
            self.folder.discard(&content);
            return Ok(());
        }
        entity.row_len_max += row_len as u64;
        entity.incoming.join(&incoming);
        let (refused, complete) = self.ranges.add(&mut self.folder, &identity, (range.start, content))?;
        if let Some(content) = refused {
            incoming.content = content;
            let ended =
                Ended { key, incoming, description, decoding: None, joined: None, pem: None, names: None };
            self.write(flow, &mut state.spent, ended)?;
        }
        complete.map_or(Ok(()), |entity| self.write_joined(entity))
    }

    /// Writes an entity, whose ranges may have gaps.
    fn write_joined(&mut self, mut entity: Entity) -> Result<(), Failure> {
        let gaps = entity.gaps();
        // All ranges may have been refused or suppressed.
        let Some(content) = self.folder.join(entity.take_pieces())? else { return Ok(()) };
        let is_body = entity.is_body();
        let Entity { key, flow, mut incoming, texts, number, complete_len, range_count, row_len_max, .. } =
            entity;
        let received_len = content.len;
        incoming.content = content;
        incoming.received_len = row_len_max / OUTPUT_PER_OCTET;
        let mut range = None;
        if !is_body {
            (incoming.gap_count, incoming.missing_len) = (gaps.count, gaps.missing_len);
            range = Some(Range { start: gaps.start, len: received_len, complete_len });
        }
        let description = Description {
            name: texts.name.as_deref(),
            content_type: texts.content_type.as_deref(),
            content_encoding: texts.content_encoding.as_deref(),
            command: None,
            number,
            is_complete: gaps.count == 0 && complete_len.is_some(),
            range,
            prefix: None,
            is_cut: false,
        };
        let is_whole = gaps.start == 0 && !gaps.is_divided;
        let credit = (&mut DecodingCredit::default(), received_len);
        let coding = description.content_encoding;
        let decoding = self.decode(&mut incoming.content, coding, is_whole, credit)?;
        let joined = (!is_body).then_some((gaps, range_count));
        let ended = Ended { key, incoming, description, decoding, joined, pem: None, names: None };
        self.write(&flow, &mut 0, ended)?;
        Ok(())
    }

    /// Writes the entities that are not complete at the end of the input.
    fn write_ranges(&mut self) {
        while let (Ok(()), Some(entity)) = (&self.outcome, self.ranges.take_first()) {
            self.outcome = self.write_joined(entity);
        }
    }

    /// Writes the row of an object, and gives its file the final name, unless the row would exceed the bound on the output,
    /// of which `spent` was used. Returns the names of its files.
    fn write(
        &mut self,
        flow: &FlowFacts,
        spent: &mut u64,
        ended: Ended<'_>,
    ) -> Result<Option<Names>, Failure> {
        let Self { folder, writer, bound, .. } = self;
        let is_new = ended.names.is_none();
        let names = ended.names.clone().unwrap_or_else(|| ended.new_names(folder.count + 1));
        let Ended { key, incoming, description, decoding, joined, pem, .. } = &ended;
        let sha256 = incoming.content.sha256();
        let row = ObjectRow {
            file: &names.file,
            pem_file: names.pem_file.as_deref(),
            name: ended.name(),
            is_complete: description.is_complete,
            sha256: &sha256,
            content_type: description.content_type,
            content_encoding: description.content_encoding,
            decoding: *decoding,
            range_start: description.range.map(|range| range.start),
            complete_len: description.range.and_then(|range| range.complete_len),
            range_count: joined.as_ref().map_or(0, |(_, count)| *count),
            ranges: joined.as_ref().and_then(|(gaps, _)| gaps.ranges.as_deref()),
            transaction: description.number,
            command: description.command,
            ..incoming.row(flow, *key)
        };
        let mut outcome = Ok(());
        let is_written = writer.write_if(&row, &mut |len| {
            if !bound.permits(spent, incoming.received_len, len) {
                return false;
            }
            if is_new {
                outcome = folder.complete(&incoming.content, &names.file);
                if let (Ok(()), Some((file, pem))) = (&outcome, names.pem_file.as_ref().zip(pem.as_ref())) {
                    outcome = folder.add(file, pem.as_bytes());
                }
            }
            outcome.is_ok()
        })?;
        outcome?;
        if !is_written {
            self.suppressed_count += 1;
            self.folder.discard(&incoming.content);
            return Ok(None);
        }
        self.row_count += 1;
        self.incomplete_count += u64::from(is_new && !description.is_complete);
        Ok(Some(names))
    }

    /// Writes the certificates of a chain, each of them only once. The others have only a row.
    fn certificates(
        &mut self,
        flow: &mut Flow<'_, State>,
        meta: &MessageMeta,
        chain: &CertificateChain<'_>,
    ) -> Result<(), Failure> {
        for (position, certificate) in chain.iter().enumerate() {
            let (der, digest) = (certificate.der, certificate.sha256());
            if der.len() < CERTIFICATE_LEN_MIN {
                continue;
            }
            let names = self.certificates.get(&digest).cloned();
            let content = match &names {
                Some(_) => Some(Content::of(der)),
                None => self.folder.begin(),
            };
            let Some(content) = content else { continue };
            let key = Key::new(Kind::Certificate, position as u64, meta.from);
            let mut incoming = Incoming::new(content, meta, flow.state.request(key));
            if names.is_none() {
                self.folder.write(&mut incoming.content, der)?;
            }
            let is_complete = incoming.content.omitted_len == 0;
            let dns_name = certificate.dns_names().next().map(|name| name.to_string());
            let name = dns_name.or_else(|| certificate.subject.common_name().map(Cow::into_owned));
            let description = Description {
                name: name.as_deref(),
                number: position as u64,
                is_complete,
                ..Description::default()
            };
            let pem = (self.args.pem && is_complete).then(|| pem(der));
            let client = if meta.from == Role::Client { meta.side } else { meta.side.other() };
            let facts = FlowFacts::new(&flow.view, &mut *flow.state, client);
            let ended = Ended { key, incoming, description, decoding: None, joined: None, pem, names };
            let names = self.write(&facts, &mut flow.state.spent, ended)?;
            if let Some(names) = names.filter(|_| is_complete) {
                self.note_certificate(digest, names);
            }
        }
        Ok(())
    }
}

impl ObjectSink<'_> {
    /// Notes the files of a certificate. Without memory, all others are forgotten, so that they are written again.
    fn note_certificate(&mut self, digest: [u8; 32], names: Names) {
        if self.certificates.contains_key(&digest) {
            return;
        }
        if self.certificates_len > self.certificates_max {
            (self.certificates, self.certificates_len) = (HashMap::new(), 0);
        }
        self.certificates_len += names.held_len();
        self.certificates.insert(digest, names);
    }

    /// Notes by how much the memory of the state of a flow has changed.
    const fn note_memory(&mut self, before: usize, state: &State) {
        self.flows_len = self.flows_len + state.heap_len() - before;
    }
}

/// Returns a certificate as PEM (RFC 7468 section 5).
fn pem(der: &[u8]) -> String {
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for octets in der.chunks(PEM_LINE_LEN / 4 * 3) {
        BASE64_STANDARD.encode_string(octets, &mut text);
        text.push('\n');
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

impl Sink for ObjectSink<'_> {
    type State = State;
    type Stage = Sessions<Standard>;

    fn interest(&self) -> Interest {
        let wanted = if matches!(self.choice, Choice::All) { Interest::RECORDS } else { Interest::STARTS };
        wanted | Interest::VARIES
    }

    fn started(&mut self, flow: &mut Flow<'_, State>) {
        self.started_count += 1;
        if !self.choice.selects(&flow.view, self.started_count) {
            flow.mute();
        }
    }

    fn message(&mut self, flow: &mut Flow<'_, State>, meta: &MessageMeta, message: &Message<'_>) {
        let before = flow.state.heap_len();
        if let Some(piece) = message.piece()
            && let Some(kind) = Kind::of(meta.protocol)
        {
            self.piece(flow, meta, (kind, piece));
        }
        match message {
            Message::Http1(_) | Message::Http2(_) if self.wants(Kind::Http) => flow.state.note(message),
            Message::Tftp(tftp::Message::Request(_)) => {
                // It ends the transfer of an earlier one in the same flow.
                for sender in [Role::Client, Role::Server] {
                    let key = Key::new(Kind::Tftp, 0, sender);
                    self.end(&flow.view, &mut *flow.state, key, Description::default());
                }
            }
            Message::Tls(tls::Message::CertificateChain(chain))
            | Message::Dtls(tls::Message::CertificateChain(chain))
                if self.outcome.is_ok() && self.wants(Kind::Certificate) =>
            {
                self.outcome = self.certificates(flow, meta, chain);
            }
            _ => {}
        }
        self.note_memory(before, flow.state);
    }

    fn session(&mut self, flow: &mut Flow<'_, State>, event: &SessionEvent) {
        if let SessionEvent::Stopped { fault: Fault::EVICTED | Fault::NO_MEMORY, .. } = event {
            let before = flow.state.heap_len();
            self.end_all(&flow.view, &mut *flow.state, true);
            self.note_memory(before, flow.state);
        }
    }

    fn ended(&mut self, view: &FlowView<'_>, reason: EndReason, mut state: State) {
        self.flows_len -= state.heap_len();
        self.end_all(view, &mut state, reason == EndReason::LackOfResources);
    }

    fn held_bytes(&mut self, left: u64) -> u64 {
        let left_len = usize::try_from(left).unwrap_or(usize::MAX);
        self.ranges.set_left(left_len);
        let certificates_len = self.certificates_len.saturating_add(left_len) / CERTIFICATES_PART;
        self.certificates_max = certificates_len.max(CERTIFICATES_MIN);
        self.window_max = left / WINDOW_PART;
        (self.flows_len + self.ranges.held_len() + self.certificates_len) as u64
    }

    fn batch_ended(&mut self) -> ControlFlow<()> {
        if self.outcome.is_ok() && self.is_stream && self.row_count > self.flushed_count {
            self.flushed_count = self.row_count;
            self.outcome = self.writer.flush().map_err(Failure::from);
        }
        if self.outcome.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

impl TransactionSink for ObjectSink<'_> {
    fn transaction(&mut self, view: &FlowView<'_>, state: &mut State, transaction: &Transaction) {
        let before = state.heap_len();
        let is_cut = transaction.lacks() == Some(Lack::Limit);
        match &transaction.content {
            Transferred::Http(http) => {
                state.take_request(http.number);
            }
            // Parts of a mail are in its file.
            Transferred::File(file) if file.part.is_none() => {
                let Some(kind) = Kind::of(transaction.protocol()) else { return };
                let number = if matches!(kind, Kind::Http | Kind::Smb) { file.number } else { 0 };
                let key = Key::new(kind, number, file.role.unwrap_or(Role::Server));
                let may_continue = key.sender() == Role::Server && !file.is_complete;
                let description = Description {
                    name: file.name.as_deref(),
                    content_type: file.content_type.as_deref(),
                    content_encoding: file.content_encoding.as_deref(),
                    command: file.ftp_command(),
                    number: file.number,
                    is_complete: file.is_complete,
                    is_cut,
                    range: Range::of_file(file),
                    prefix: file.declared_len.filter(|_| may_continue).map(Range::of_whole),
                };
                self.end(view, state, key, description);
            }
            Transferred::Mail(mail) => {
                let is_complete = std::mem::take(&mut state.is_mail_complete);
                let description = Description {
                    name: mail.subject.as_deref(),
                    number: mail.number,
                    is_complete,
                    is_cut,
                    ..Description::default()
                };
                self.end(view, state, Key::new(Kind::Mail, mail.number, Role::Client), description);
            }
            _ => {}
        }
        self.note_memory(before, state);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use etherparse::PacketBuilder;
    use flowgauge::{Frame, Pipeline};

    use super::*;
    use crate::heap::{UNCOUNTED_LEN, peak_of};

    const LIMIT: u64 = 4 << 20;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        objects: ObjectsArgs,
    }

    /// A segment from or to the client with this number.
    fn segment(number: u32, (is_from_server, seq, ack): (bool, u32, u32), payload: &[u8]) -> Vec<u8> {
        let [_, a, b, c] = number.to_be_bytes();
        let mut ends = [([10, a, b, c], 40_000), ([192, 0, 2, 1], 80)];
        if is_from_server {
            ends.reverse();
        }
        let [(source, source_port), (destination, destination_port)] = ends;
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6]).ipv4(source, destination, 64).tcp(
            source_port,
            destination_port,
            seq,
            1000,
        );
        let builder = if seq == 0 { builder.syn() } else { builder };
        let builder = if seq > 0 || is_from_server { builder.ack(ack) } else { builder };
        let mut frame = Vec::new();
        builder.write(&mut frame, payload).unwrap();
        frame
    }

    /// A connection with a request for a target, and a response.
    fn connection(number: u32, target: &str, response: &[u8]) -> [Vec<u8>; 4] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {}\r\n\r\n", "h".repeat(500));
        let end = 1 + request.len() as u32;
        [
            segment(number, (false, 0, 0), b""),
            segment(number, (true, 0, 1), b""),
            segment(number, (false, 1, 1), request.as_bytes()),
            segment(number, (true, 1, end), response),
        ]
    }

    /// Coded bodies that begin and do not end, and ranges of entities and of one entity that is never complete.
    #[test]
    fn allocated_memory_is_within_the_budget() {
        let body =
            [&b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nContent-Encoding: br\r\n\r\n"[..], &[7; 600]];
        let body = body.concat();
        let range = |start: u32| {
            let head = format!(
                "HTTP/1.1 206 Partial Content\r\nContent-Length: 520\r\nContent-Range: bytes {start}-{}/9000000\r\n\r\n",
                start + 519
            );
            [head.as_bytes(), &[7; 520]].concat()
        };
        let long = |number: u32| format!("/{number:0>700}");
        type Exchange<'a> = &'a dyn Fn(u32) -> (String, Vec<u8>);
        let cases: [(&str, u32, Exchange<'_>); 3] = [
            ("bodies", 3000, &|number| (long(number), body.clone())),
            ("entities", 600, &|number| (long(number), range(1000))),
            ("pieces", 3000, &|number| (long(0), range(1000 * number))),
        ];
        for (name, count, of) in cases {
            let out = std::env::temp_dir().join(format!("flowgauge-objects-{}-{name}", std::process::id()));
            let line = ["", "-", "--decode", "--out", out.to_str().unwrap(), "--memory", &LIMIT.to_string()];
            let Line { objects: args } = Line::try_parse_from(line).unwrap();
            let mut sink = ObjectSink::new(Choice::All, &args, false).unwrap();
            // Rows would fill the output of the test.
            sink.writer = Box::new(flowgauge::export::Lines::ndjson(std::io::sink(), None, Style::default()));
            let mut time_ns = 0;
            let (peak, (held_max, sink)) = peak_of(|| {
                let builder = Pipeline::builder().resources(args.shared.resources());
                let mut pipeline = builder.build(Transactions::new(sink)).unwrap();
                let mut held_max = 0;
                for number in 0..count {
                    let (target, response) = of(number);
                    for frame in connection(number, &target, &response) {
                        time_ns += 1000;
                        pipeline.frame(&Frame::ethernet(flowgauge::Timestamp::from_nanos(time_ns), &frame));
                    }
                    let sink = pipeline.sink().inner();
                    held_max = held_max.max(sink.flows_len + sink.ranges.held_len());
                }
                pipeline.finish();
                let mut sink = pipeline.into_sink().into_inner();
                sink.write_ranges();
                (held_max, sink)
            });
            let ObjectSink { flows_len, cut_count, row_count, ranges, outcome, .. } = &sink;
            println!("{name}: {peak} bytes, {held_max} charged at most, {row_count} rows, {cut_count} cut");
            assert!(outcome.is_ok() && peak <= LIMIT as usize + UNCOUNTED_LEN, "{name}: {peak} bytes");
            assert_eq!((*flows_len, ranges.held_len()), (0, 0), "{name}: what is freed is not charged");
            assert!(held_max > 100_000, "{name}: {held_max} bytes");
            let is_cut = name == "bodies";
            assert!(
                *row_count > 1 && (*cut_count > 0) == is_cut,
                "{name}: {row_count} rows, {cut_count} cut"
            );
            drop(sink);
            std::fs::remove_dir_all(&out).unwrap();
        }
    }
}
