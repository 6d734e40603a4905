// Package coverage reads docs/coverage.tsv. Slipway is based on five documents. The file has one
// row for each feature that they describe, with its state and the tests that prove it.
//
// The file is tab-separated, with one header line, followed by one row per line.
//
//	document  section  row  state  proof  note
//
// A row's name is unique within its document. A proof is one or more Go tests, separated by commas.
// Each test is `<package path in the module>.<Test>` with an optional `/<subtest>`, for example
// `test/scenario/boot.TestBoot`.
package coverage

// State is the extent to which Slipway supports the feature in a row.
type State string

// Possible states of a row.
const (
	Works      State = "works"      // supported, and the proof shows it
	Partial    State = "partial"    // partly supported; the proof shows which part
	Kubernetes State = "kubernetes" // upstream Kubernetes supports it, and a scenario shows it
	Retired    State = "retired"    // Kubernetes removed the basis; the note names a replacement
	Open       State = "open"       // not supported yet
)

// States returns all states in the order in which reports list them.
func States() []State { return []State{Works, Partial, Kubernetes, Retired, Open} }

// needsProof reports whether a row in state s must have a proof.
func (s State) needsProof() bool { return s == Works || s == Partial || s == Kubernetes }

// Row is one line in the file.
type Row struct {
	Line     int    // line in the file, from 1
	Document string // short name of the document, such as "csi"
	Section  string // section of the document
	Name     string // name of the row, unique within the document, without white space
	State    State
	Proofs   []Proof // empty for rows that are open or retired
	Note     string  // the row's requirement, at most 100 characters
}

// Proof identifies one test.
type Proof struct {
	Package string // folder of the package, relative to the module, with slashes
	Test    string // name of the test function
	Subtest string // rest of the name after the first slash, or empty
}

// String returns the proof in the file's format.
func (p Proof) String() string {
	s := p.Package + "." + p.Test
	if p.Subtest != "" {
		s += "/" + p.Subtest
	}
	return s
}
