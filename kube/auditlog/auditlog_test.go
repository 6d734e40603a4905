package auditlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// line returns an event as it appears in the log.
func line(user, verb, resource, name string, code int) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","requestURI":"/x","verb":%q,"user":{"username":%q},
"objectRef":{"resource":%q,"namespace":"shop","name":%q,"apiGroup":"apps"},"responseStatus":{"code":%d}}`, verb, user, resource, name, code)
}

func logOf(t *testing.T, lines ...string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "audit.log")
	for i, text := range lines {
		lines[i] = strings.ReplaceAll(text, "\n", "")
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestSearchReturnsNewestMatchesFirst(t *testing.T) {
	file := logOf(t,
		line("anna", "update", "deployments", "web", 200),
		line("ben", "update", "deployments", "web", 403),
		"not JSON",
		strings.Replace(line("anna", "watch", "pods", "", 200), "ResponseComplete", "ResponseStarted", 1),
		line("anna", "delete", "deployments", "web", 200),
	)
	for _, c := range []struct {
		name string
		q    query
		want string
	}{
		{"everything", query{}, "anna delete deployments.apps 200, ben update deployments.apps 403, anna update deployments.apps 200"},
		{"by user", query{user: "anna"}, "anna delete deployments.apps 200, anna update deployments.apps 200"},
		{"by resource without its group", query{resource: "deployments", verb: "update"}, "ben update deployments.apps 403, anna update deployments.apps 200"},
		{"refused requests", query{failed: true}, "ben update deployments.apps 403"},
		{"of another project", query{namespace: "other"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			result, err := search(t.Context(), file, c.q)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range result.Events {
				got = append(got, fmt.Sprintf("%s %s %s %d", e.User, e.Verb, e.Resource, e.Code))
			}
			if strings.Join(got, ", ") != c.want || !result.Complete {
				t.Errorf("got %q, complete %t, want %q", got, result.Complete, c.want)
			}
		})
	}
}

func TestSearchReadsRotatedFiles(t *testing.T) {
	file := logOf(t, line("anna", "delete", "deployments", "web", 200))
	for name, verb := range map[string]string{
		"audit-2026-11-28T10-00-00.000.log": "create", "audit-2026-11-29T10-00-00.000.log": "update", "audit-old.txt": "get", "other-2026-11-29T10-00-00.000.log": "get",
	} {
		content := strings.ReplaceAll(line("anna", verb, "deployments", "web", 200), "\n", "") + "\n"
		if err := os.WriteFile(filepath.Join(filepath.Dir(file), name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	result, err := search(t.Context(), file, query{user: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, event := range result.Events {
		got = append(got, event.Verb)
	}
	if want := "delete update create"; strings.Join(got, " ") != want || !result.Complete {
		t.Errorf("got %q, complete %t, want %q", got, result.Complete, want)
	}
}

func TestSearchEndsAtLimitOfEvents(t *testing.T) {
	var lines []string
	for range maxEvents + 1 {
		lines = append(lines, line("anna", "get", "pods", strings.Repeat("x", chunkSize/64), 200))
	}
	result, err := search(t.Context(), logOf(t, lines...), query{user: "anna"})
	if err != nil || len(result.Events) != maxEvents || result.Complete {
		t.Errorf("got %d events, complete %t, error %v", len(result.Events), result.Complete, err)
	}
}

func TestSearchReportsThatLogIsOff(t *testing.T) {
	if result, err := search(t.Context(), "", query{}); err != nil || result.Enabled {
		t.Errorf("got %v, error %v", result, err)
	}
	if result, err := search(t.Context(), filepath.Join(t.TempDir(), "none"), query{}); err != nil || !result.Enabled || !result.Complete {
		t.Errorf("without a file: got %v, error %v", result, err)
	}
}
