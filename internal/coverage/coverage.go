// Package coverage reads docs/coverage.tsv, the list of everything that the five documents behind
// Slipway describe, with how far each row is served and the test that proves it.
//
// The file is tab-separated, one row a line below one header line:
//
//	document  section  row  state  proof  note
//
// A row is named uniquely within its document. A proof is one or several Go tests separated by
// commas, each `<package path in the module>.<Test>` with an optional `/<subtest>`, for example
// `test/scenario/boot.TestBoot`.
package coverage

// State says how far a row is served.
type State string

// The states of a row.
const (
	Works      State = "works"      // served, and the proof shows it
	Partial    State = "partial"    // served in part; the proof shows which part
	Kubernetes State = "kubernetes" // stock Kubernetes serves it, and a scenario shows it
	Retired    State = "retired"    // Kubernetes has removed the ground; the note says what replaces it
	Open       State = "open"       // not served yet
)

// States lists every state in the order of reports.
func States() []State { return []State{Works, Partial, Kubernetes, Retired, Open} }

// needsProof tells whether a row in state s must name a test.
func (s State) needsProof() bool { return s == Works || s == Partial || s == Kubernetes }

// Row is one line of the file.
type Row struct {
	Line     int    // line in the file, from 1
	Document string // short name of the document, such as "csi"
	Section  string // section of the document
	Name     string // name of the row, unique within the document, without white space
	State    State
	Proofs   []Proof // empty for rows that are open or retired
	Note     string  // what the row asks for, at most 100 characters
}

// Proof names one test.
type Proof struct {
	Package string // folder of the package, relative to the module, with slashes
	Test    string // name of the test function
	Subtest string // rest of the name behind the first slash, or empty
}

// String returns the proof as the file writes it.
func (p Proof) String() string {
	s := p.Package + "." + p.Test
	if p.Subtest != "" {
		s += "/" + p.Subtest
	}
	return s
}
