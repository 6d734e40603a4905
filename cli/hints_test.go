package cli

import (
	"strings"
	"testing"
)

func TestErrorsAreForUsers(t *testing.T) {
	for message, want := range map[string][2]string{
		`error: error validating "web.yaml": error validating data: failed to check CRD: failed to list CRDs: forbidden`: {`"web.yaml": it contains a kind that the server does not have`, "CRD"},
		`error: no matches for kind "Wrong" in version "example.com/v1"` + "\nensure CRDs are installed first":           {"oc api-resources", "CRD"},
		`Error from server (Forbidden): pods is forbidden: User "system:anonymous" cannot list resource "pods"`:          {"log in with: oc login", ""},
		"error: You must be logged in to the server (Unauthorized)":                                                      {"log in with: oc login", ""},
		`Error from server (NotFound): pods "web" not found`:                                                             {`pods "web" not found`, "log in"},
	} {
		got := withHint(message)
		if !strings.Contains(got, want[0]) || want[1] != "" && strings.Contains(got, want[1]) {
			t.Errorf("%q becomes %q", message, got)
		}
	}
}

func TestMisspelledCommandsNameSimilarOnes(t *testing.T) {
	for line, want := range map[string]string{
		"adm polcy":            "Did you mean this?\n\tpolicy",
		"adm policy who-cann":  "Did you mean this?\n\twho-can",
		"set envv dc/web":      "Did you mean this?\n\tenv",
		"adm policy nonsense":  `unknown command "nonsense" for "oc adm policy"`,
		"rollout lastest dc/a": "Did you mean this?\n\tlatest",
		"stop dc/database":     "\tdelete\n",
	} {
		if _, stderr, code := client(t, "oc", nil, strings.Fields(line)...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("oc %s: code %d, %s, want %q", line, code, stderr, want)
		}
	}
}
