package coverage

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is the module's root folder.
const root = "../.."

func TestEveryProofExists(t *testing.T) {
	rows, err := Load(filepath.Join(root, "docs", "coverage.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckProofs(root, "docs/coverage.tsv", rows); err != nil {
		t.Error(err)
	}
	var documents []string
	for _, total := range Totals(rows) {
		documents = append(documents, total.Document)
	}
	want := []string{"architecture-3.9", "administration-3.11", "flexvolume-3", "flexvolume-discovery", "csi"}
	if diff := cmp.Diff(want, documents); diff != "" {
		t.Errorf("documents in docs/coverage.tsv (-want +got):\n%s", diff)
	}
}

func TestParse(t *testing.T) {
	const good = "csi\tGoals\tcsi/discovery\t"
	tests := []struct {
		name, lines string
		want        []Row
		wantErr     string // part of the error, or empty
	}{
		{
			name:  "open row",
			lines: good + "open\t\tFinds drivers\n",
			want:  []Row{{Line: 2, Document: "csi", Section: "Goals", Name: "csi/discovery", State: Open, Note: "Finds drivers"}},
		},
		{
			name:  "two proofs",
			lines: good + "works\ta/b.TestX,c.TestY/v1.2/z\tFinds drivers\n",
			want: []Row{{
				Line: 2, Document: "csi", Section: "Goals", Name: "csi/discovery", State: Works, Note: "Finds drivers",
				Proofs: []Proof{{Package: "a/b", Test: "TestX"}, {Package: "c", Test: "TestY", Subtest: "v1.2/z"}},
			}},
		},
		{name: "unknown state", lines: good + "done\t\tFinds drivers\n", wantErr: `file:2: state "done" is unknown`},
		{name: "works without proof", lines: good + "works\t\tFinds drivers\n", wantErr: `file:2: row "csi/discovery" is "works" without a proof`},
		{name: "partial without proof", lines: good + "partial\t\tFinds drivers\n", wantErr: "without a proof"},
		{name: "kubernetes without proof", lines: good + "kubernetes\t\tFinds drivers\n", wantErr: "without a proof"},
		{name: "open with proof", lines: good + "open\ta.TestX\tFinds drivers\n", wantErr: "with a proof"},
		{name: "proof without test", lines: good + "works\ta/b\tFinds drivers\n", wantErr: `proof "a/b"`},
		{name: "space between proofs", lines: good + "works\ta.TestX, b.TestY\tFinds drivers\n", wantErr: `proof " b.TestY"`},
		{name: "missing field", lines: good + "open\tFinds drivers\n", wantErr: "file:2: 5 fields"},
		{name: "no note", lines: good + "open\t\t\n", wantErr: "has no note"},
		{name: "long note", lines: good + "open\t\t" + strings.Repeat("é", 101) + "\n", wantErr: "has 101 characters"},
		{name: "no document", lines: "\tGoals\tcsi/discovery\topen\t\tFinds drivers\n", wantErr: "must not be empty"},
		{name: "space in name", lines: "csi\tGoals\tcsi discovery\topen\t\tFinds drivers\n", wantErr: "contains white space"},
		{name: "trailing space", lines: good + "open\t\tFinds drivers \n", wantErr: "begins or ends with white space"},
		{
			name:    "name taken",
			lines:   good + "open\t\tFinds drivers\n" + good + "open\t\tFinds them again\n",
			want:    []Row{{Line: 2, Document: "csi", Section: "Goals", Name: "csi/discovery", State: Open, Note: "Finds drivers"}},
			wantErr: `file:3: row "csi/discovery" of document "csi" is already in line 2`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Parse("file", strings.NewReader(header+"\n"+tt.lines))
			checkError(t, err, tt.wantErr)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseReportsEveryLine(t *testing.T) {
	_, err := Parse("file", strings.NewReader("wrong\na\nb\n"))
	for _, part := range []string{"file:1: header", "file:2: 1 fields", "file:3: 1 fields"} {
		checkError(t, err, part)
	}
	_, err = Parse("file", strings.NewReader(""))
	checkError(t, err, "file is empty")
}

func TestCheckProofs(t *testing.T) {
	folder := t.TempDir()
	const source = `package boot

import "testing"

func TestBoot(t *testing.T) {
	t.Run("with a service", func(t *testing.T) {
		t.Run("by DNS", func(t *testing.T) {})
	})
}

func TestMain(m *testing.M) {}

func (s suite) TestMethod(t *testing.T) {}

func Testify(t *testing.T) {}
`
	for path, content := range map[string]string{
		"test/boot/boot_test.go": source,
		"test/boot/boot.go":      "package boot\n\nfunc TestElsewhere(t *testing.T) {}\n",
		"test/bad/bad_test.go":   "package bad\n\nfunc {\n",
	} {
		path = filepath.Join(folder, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct{ proof, wantErr string }{
		{"test/boot.TestBoot", ""},
		{"test/boot.TestBoot/with_a_service", ""},
		{"test/boot.TestBoot/with_a_service/by_DNS", ""},
		{"test/boot.TestBoot/with_a_route", `file:7: proof "test/boot.TestBoot/with_a_route" of row "r": no subtest named "with_a_route"`},
		{"test/boot.TestGone", "no function TestGone in the _test.go files of test/boot"},
		{"test/boot.TestMain", "no function TestMain"},
		{"test/boot.Testify", "no function Testify"},
		{"test/boot.TestMethod", "no function TestMethod"},
		{"test/boot.TestElsewhere", "no function TestElsewhere"},
		{"test/gone.TestBoot", "no function TestBoot in the _test.go files of test/gone"},
		{"test/bad.TestBad", "parse tests: "},
	}
	for _, tt := range tests {
		t.Run(tt.proof, func(t *testing.T) {
			proof, err := parseProof(tt.proof)
			if err != nil {
				t.Fatal(err)
			}
			if proof.String() != tt.proof {
				t.Errorf("String() = %q, want %q", proof, tt.proof)
			}
			checkError(t, CheckProofs(folder, "file", []Row{{Line: 7, Name: "r", Proofs: []Proof{proof}}}), tt.wantErr)
		})
	}
}

func TestTotals(t *testing.T) {
	rows := []Row{
		{Document: "b", Section: "2", State: Works},
		{Document: "a", Section: "1", State: Open},
		{Document: "b", Section: "1", State: Works},
		{Document: "b", Section: "2", State: Retired},
	}
	got := Totals(rows)
	want := []DocumentTotal{
		{Document: "b", Count: Count{Works: 2, Retired: 1}, Sections: []SectionTotal{
			{Section: "2", Count: Count{Works: 1, Retired: 1}},
			{Section: "1", Count: Count{Works: 1}},
		}},
		{Document: "a", Count: Count{Open: 1}, Sections: []SectionTotal{{Section: "1", Count: Count{Open: 1}}}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("totals (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Count{Works: 2, Retired: 1, Open: 1}, Sum(got)); diff != "" {
		t.Errorf("sum (-want +got):\n%s", diff)
	}
	if n := Sum(got).Rows(); n != len(rows) {
		t.Errorf("Rows() = %d, want %d", n, len(rows))
	}
}

// checkError fails the test unless err contains wantErr, or is nil if wantErr is empty.
func checkError(t *testing.T, err error, wantErr string) {
	t.Helper()
	switch {
	case wantErr == "" && err != nil:
		t.Errorf("unexpected error: %v", err)
	case wantErr != "" && (err == nil || !strings.Contains(err.Error(), wantErr)):
		t.Errorf("error %v, want one that contains %q", err, wantErr)
	}
}
