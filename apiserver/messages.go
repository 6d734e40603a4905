package apiserver

import (
	"bytes"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
)

// messages counts the list elements in a protobuf message that are messages, strings or bytes. Each
// element takes at least two bytes: its tag and its length.
type messages struct {
	body   []byte
	counts counts
}

// count adds a piece of the body and returns the counts. To limit its cost, it parses the body
// again only if the body's size has doubled or if the piece is empty, which marks the end of the
// body.
func (m *messages) count(piece []byte) counts {
	const first = 16 << 10
	before := len(m.body)
	m.body = append(m.body, piece...)
	if len(piece) == 0 || before < first && len(m.body) >= first || len(m.body) >= 2*before {
		message := bytes.TrimPrefix(m.body, []byte("k8s\x00"))
		m.counts = counts{elements(message, 0), encodedPaths(message, pathsFields)}
	}
	return m.counts
}

// maxDepth is the maximum nesting depth that elements parses. It exceeds the nesting depth of
// Kubernetes messages.
const maxDepth = 40

// Wire types of the protobuf encoding.
const (
	kindVarint, kindFixed64, kindBytes, kindStartGroup, kindEndGroup, kindFixed32 = 0, 1, 2, 3, 4, 5
)

// elements counts the list elements in a message and its nested messages. Protobuf encodes a list
// as a repeated field, so elements counts each length-delimited field whose field number has
// occurred before in the same message. It counts every field with a number of 64 or higher, because
// it does not track these numbers. It stops at the first byte that is not part of a message. It
// must accept at least what Kubernetes' decoders accept. Otherwise, a decoder could decode list
// elements that were not counted.
func elements(message []byte, depth int) (count int) {
	const numbers = 64
	if depth == maxDepth {
		return 0
	}
	var seen uint64 // bit set of the field numbers below 64 that have occurred
	eachField(message, func(number uint64, content []byte) {
		if number >= numbers || seen&(1<<number) != 0 {
			count++
		} else {
			seen |= 1 << number
		}
		count += elements(content, depth+1)
	})
	return count
}

// eachField calls visit for each length-delimited field of a message, up to the first byte that is
// not part of the message.
func eachField(message []byte, visit func(number uint64, content []byte)) {
	for len(message) > 0 {
		tag, n := varint(message)
		if n == 0 {
			return
		}
		message, n = message[n:], 0
		switch tag & 7 {
		case kindVarint:
			_, n = varint(message)
		case kindFixed64:
			n = 8
		case kindFixed32:
			n = 4
		case kindStartGroup, kindEndGroup:
		case kindBytes:
			length, size := varint(message)
			if size == 0 {
				return
			}
			n = len(message) // the rest of the field is in a later piece
			if length < uint64(n-size) {
				n = size + int(length)
			}
			visit(tag>>3, message[size:n])
		default:
			return
		}
		message = message[min(n, len(message)):]
	}
}

// varint decodes a protobuf varint. n is the varint's length in bytes, or 0 if text does not begin
// with a complete varint. Like generated decoders, varint drops bits that do not fit.
func varint(text []byte) (value uint64, n int) {
	const maxBytes = 10
	for n < min(len(text), maxBytes) {
		value |= uint64(text[n]&0x7f) << (7 * n)
		n++
		if text[n-1] < 0x80 {
			return value, n
		}
	}
	return 0, 0
}

// Field numbers that lead from a message to its field paths: the object in runtime's Unknown,
// metadata, managedFields, fieldsV1, and its JSON.
var pathsFields = []uint64{2, 1, 17, 7, 1}

// encodedPaths returns the number of field paths in a protobuf message. It derives the number from
// the separators between the JSON values in fieldsV1.
func encodedPaths(message []byte, fields []uint64) (count int) {
	if len(fields) == 0 {
		return 1 + (&jsonlimit.Counter{}).Count(message)
	}
	eachField(message, func(number uint64, content []byte) {
		if number == fields[0] {
			count += encodedPaths(content, fields[1:])
		}
	})
	return count
}
