package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNamesAvoidedByGlossaryArePrinted(t *testing.T) {
	const text = `
## Names

| for | write | not |
|---|---|---|
| counts | ` + "`max...`" + ` | many |
| locals | a noun: ` + "`pod`" + ` | found, made |

## Log attributes

| key | value | not |
|---|---|---|
| ` + "`error`" + ` | the error | err, cause |
| ` + "`driver`" + ` | a name | |
| ` + "`address`" + ` | an IP address | at, endpoint |
| ` + "`endpoint`" + ` | a socket | |

## Phrases

| locals | | other |
`
	var out strings.Builder
	writeNames(&out, testSources(t, map[string]string{"a.go": `package a

func a() {
	found, other := 1, 2
	for made := range other {
		slog.Info("message", "cause", found, "error", "err", "endpoint", "/socket")
	}
	found = many("err", made)
}
`}), text)
	want := `
Locals with names that the glossary avoids: 2
          a.go:4 found
          a.go:5 made

Log attributes with keys that the glossary avoids: 1
          a.go:6 cause
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}

func TestVerbsWithoutPhasesArePrinted(t *testing.T) {
	var out strings.Builder
	writePhases(&out, testSources(t, map[string]string{
		"cli/a.go": "package cli\n\nvar (\n\ta = &cobra.Command{Run: func() {\n\t\tcheck(o.validate())\n" + strings.Repeat("\t\tcheck()\n", 20) +
			"\t}}\n\tb = &cobra.Command{RunE: func() {\n" + strings.Repeat("\t\tcheck()\n", 13) + "\t}}\n\tc = &cobra.Command{Run: func() { check() }}\n)\n",
		"cli/a_test.go": "package cli\n\nvar d = &cobra.Command{Run: func() {}}\n",
		"cmd/a.go":      "package cmd\n\nvar d = &cobra.Command{Run: func() {}}\n",
	}))
	want := `
Verbs of oc: 3, 1 with phases, 1 without phases and of more than 12 lines
      13  cli/a.go:27
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("verbs (-want +got):\n%s", diff)
	}
}
