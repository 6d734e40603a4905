package repocheck

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// subjectsSince is the time from which the rule on commit subjects applies.
const subjectsSince = "2026-11-22T22:30:00Z"

const maxSubject = 72

// longSubject is the subject of a commit that was merged before the check existed.
const longSubject = "network/dns, cli/migrate: serve the masters' DNS, migrate without a rate limit"

// subject matches `path: verb what`, including subjects with several paths, and the subjects that
// git itself writes.
var subject = regexp.MustCompile(`^(?:[\w./*{}-]+(?:, [\w./*{}-]+)*: \S|Merge |Revert )`)

func TestCommitsHaveShortSubjects(t *testing.T) {
	out, err := exec.Command("git", "-c", "safe.directory=*", "log", "--since="+subjectsSince, "--format=%h %s").Output()
	if err != nil {
		t.Fatalf("list commits with git: %v: run the test in a clone", err)
	}
	for line := range strings.Lines(string(out)) {
		hash, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if problem := checkSubject(text); problem != "" && text != longSubject {
			t.Errorf("commit %s: subject %q %s", hash, text, problem)
		}
	}
}

// checkSubject returns the violation in a commit's subject, or "".
func checkSubject(text string) string {
	switch {
	case len(text) > maxSubject:
		return "is longer than 72 characters: shorten it and explain in the body"
	case !subject.MatchString(text):
		return "does not begin with a path and a colon: write `path: verb what`"
	}
	return ""
}

func TestCheckSubject(t *testing.T) {
	for text, want := range map[string]string{
		"storage/csi: stop a driver that hangs":     "",
		"storage/csi, docs: stop a driver":          "",
		"Revert \"storage/csi: stop a driver\"":     "",
		"stop a driver that hangs":                  "does not begin with a path",
		"docs: " + strings.Repeat("explain ", 9):    "longer than 72",
		"hack/tools: " + strings.Repeat("x", 72-12): "",
		"hack/tools: " + strings.Repeat("x", 72-11): "longer than 72",
	} {
		if got := checkSubject(text); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("subject %q: %q, want %q", text, got, want)
		}
	}
}
