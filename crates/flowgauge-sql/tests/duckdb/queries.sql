-- Queries that give the same rows here and in DuckDB over Parquet of the same captures. `{flows}` is the table of flows in
-- both; sums are converted, because DuckDB has wider integers.

-- counts
SELECT count(*) AS n FROM {flows};
SELECT count(*) AS n, count(source_port) AS ports, count(handshake_rtt) AS handshakes FROM {flows};
SELECT count(*) AS n FROM {packets};
SELECT count(DISTINCT source_address) AS sources, count(DISTINCT community_id) AS ids FROM {flows};

-- groups
SELECT application, count(*) AS n, CAST(sum(octet_count + reverse_octet_count) AS BIGINT) AS octets FROM {flows} GROUP BY application;
SELECT protocol, min(octet_count) AS least, max(octet_count) AS most, CAST(sum(packet_count) AS BIGINT) AS packets FROM {flows} GROUP BY protocol;
SELECT conn_state, flow_end_reason, count(*) AS n FROM {flows} GROUP BY conn_state, flow_end_reason;
SELECT file, count(*) AS n, min(start) AS first, max("end") AS last FROM {flows} GROUP BY file;
SELECT destination_port, count(*) AS n FROM {flows} WHERE protocol = 6 GROUP BY destination_port HAVING count(*) > 1;
SELECT protocol, avg(payload_octet_count) AS mean FROM {flows} GROUP BY protocol;
SELECT application, median(octet_count) AS middle FROM {flows} WHERE application IS NOT NULL GROUP BY application;
SELECT tcp_state, count(*) FILTER (WHERE retransmitted_count > 0) AS repeated, count(*) AS n FROM {flows} GROUP BY tcp_state;
SELECT date_trunc('minute', start) AS minute, count(*) AS n FROM {flows} GROUP BY 1;
SELECT CASE WHEN octet_count < 1000 THEN 'small' WHEN octet_count < 100000 THEN 'medium' ELSE 'large' END AS size, count(*) AS n FROM {flows} GROUP BY 1;
SELECT source_address, count(DISTINCT destination_address) AS peers FROM {flows} GROUP BY source_address;
SELECT protocol, source_port IS NULL AS is_without, count(*) AS n FROM {flows} GROUP BY 1, 2;

-- conditions
SELECT * FROM {flows} WHERE destination_port = 443 AND protocol = 6;
SELECT source_address, destination_address, octet_count FROM {flows} WHERE destination_port IN (53, 80) OR source_port IN (53, 80);
SELECT community_id, duration FROM {flows} WHERE duration > 1000000000;
SELECT community_id FROM {flows} WHERE source_address LIKE '10.%' AND application IN ('tls', 'http', 'dns');
SELECT community_id, file FROM {flows} WHERE application IS NULL;
SELECT community_id, tcp_flags FROM {flows} WHERE tcp_flags IS NOT NULL AND reverse_packet_count = 0;
SELECT timestamp, wire_len, tcp_flags FROM {packets} WHERE protocol = 6 AND payload_len > 1000;
SELECT source_address, source_port, CAST(sum(wire_len) AS BIGINT) AS octets FROM {packets} WHERE destination_port = 53 GROUP BY 1, 2;

-- order and limits
SELECT community_id, octet_count, start FROM {flows} ORDER BY octet_count DESC, start, community_id LIMIT 10;
SELECT community_id, start FROM {flows} ORDER BY start, community_id LIMIT 7 OFFSET 3;
SELECT wire_len, timestamp, file FROM {packets} ORDER BY wire_len DESC, timestamp, file LIMIT 5;

-- windows
SELECT community_id, file, row_number() OVER (PARTITION BY file ORDER BY octet_count DESC, start, community_id) AS place FROM {flows};
SELECT community_id, file, start, lag(octet_count) OVER (PARTITION BY file ORDER BY start, community_id, octet_count) AS before FROM {flows};
SELECT file, start, community_id, CAST(sum(packet_count) OVER (PARTITION BY file ORDER BY start, community_id, octet_count) AS BIGINT) AS packets FROM {flows};

-- messages and transactions
SELECT message, count(*) AS n FROM {messages:http} GROUP BY message;
SELECT method, host, count(*) AS n FROM {messages:http.request} GROUP BY method, host;
SELECT status, count(*) AS n FROM {messages:http} WHERE message = 'response' GROUP BY status;
SELECT role, message, count(*) AS n, min(timestamp) AS first FROM {messages:dns} GROUP BY role, message;
SELECT protocol, version, cipher_suite, count(*) AS n FROM {messages:tls.server_hello} GROUP BY 1, 2, 3;
SELECT host, count(*) AS n, CAST(sum(response_body_len) AS BIGINT) AS octets FROM {transactions:http} GROUP BY host;
SELECT status, method, timestamp FROM {transactions:http} WHERE status >= 400;

-- joins
SELECT f.application, m.method, count(*) AS n FROM {flows} f JOIN {messages:http.request} m ON f.community_id = m.community_id AND f.file = m.file GROUP BY 1, 2;
SELECT f.community_id, f.file, count(m.message) AS n FROM {flows} f LEFT JOIN {messages:dns} m ON f.community_id = m.community_id AND f.file = m.file GROUP BY 1, 2;
SELECT a.source_address, count(*) AS n FROM {flows} a JOIN {flows} b ON a.source_address = b.destination_address AND a.file = b.file GROUP BY 1;
WITH top AS (SELECT destination_address, CAST(sum(octet_count) AS BIGINT) AS octets FROM {flows} GROUP BY 1) SELECT t.octets, count(*) AS n FROM top t JOIN {flows} f ON t.destination_address = f.destination_address WHERE t.octets > 1000 GROUP BY 1;
SELECT source_address FROM {flows} UNION SELECT destination_address FROM {flows} EXCEPT SELECT source_address FROM {packets} WHERE protocol = 17;
SELECT community_id, file FROM {flows} f WHERE EXISTS (SELECT 1 FROM {transactions:tls} t WHERE t.community_id = f.community_id AND t.file = f.file);
