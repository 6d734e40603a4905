package webhook

import (
	"net/http"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
)

const (
	pushEvent = `{"ref": "refs/heads/main", "after": "abc", "head_commit": {"id": "abc", "message": "fix", "author": {"name": "Ann", "email": "a@example.com"}},
		"commits": [{"id": "abc", "message": "fix", "author": {"name": "Ann", "email": "a@example.com"}}]}`
	bitbucket = `{"push": {"changes": [{"new": null}, {"new": {"name": "other", "target": {"hash": "000"}}}, {"new": {"name": "main", "target": {"hash": "abc",
		"message": "fix", "author": {"raw": "Ann <a@example.com>"}}}}]}}`
	server  = `{"actor": {"displayName": "Ann"}, "changes": [{"ref": {"id": "refs/heads/main"}, "toHash": "abc", "type": "UPDATE"}]}`
	generic = `{"type": "git", "git": {"refs": [{"ref": "refs/heads/other", "commit": "000"}, {"ref": "refs/heads/main", "commit": "abc", "message": "fix"}]},
		"env": [{"name": "A", "value": "1"}]}`
)

func TestReadersDecodeCalls(t *testing.T) {
	const asJSON = "application/json; charset=utf-8"
	for name, tt := range map[string]struct {
		reader             Reader
		key, kind, content string
		body, ref          string
		want               string // the commit, "build" if there is no commit, "ignored" or "error"
	}{
		"github":                {GitHub, "X-GitHub-Event", "push", asJSON, pushEvent, "main", "abc"},
		"github, other ref":     {GitHub, "X-GitHub-Event", "push", asJSON, pushEvent, "", "ignored"},
		"github, ping":          {GitHub, "X-GitHub-Event", "ping", asJSON, "{}", "main", "ignored"},
		"github, issue":         {GitHub, "X-GitHub-Event", "issues", asJSON, "{}", "main", "error"},
		"github, unknown event": {GitHub, "X-Other", "push", asJSON, pushEvent, "main", "error"},
		"github, form":          {GitHub, "X-GitHub-Event", "push", "application/x-www-form-urlencoded", pushEvent, "main", "error"},
		"github, broken":        {GitHub, "X-GitHub-Event", "push", asJSON, "{", "main", "error"},
		"github, deleted":       {GitHub, "X-GitHub-Event", "push", asJSON, `{"ref": "main", "deleted": true}`, "main", "ignored"},
		"gogs":                  {GitHub, "X-Gogs-Event", "push", asJSON, `{"ref": "refs/heads/main", "commits": [{"id": "abc"}]}`, "main", "abc"},
		"gitlab":                {GitLab, "X-Gitlab-Event", "Push Hook", asJSON, pushEvent, "refs/heads/main", "abc"},
		"gitlab, no commits":    {GitLab, "X-Gitlab-Event", "Push Hook", asJSON, `{"ref": "refs/heads/main", "after": "abc"}`, "main", "abc"},
		"gitlab, deleted":       {GitLab, "X-Gitlab-Event", "Push Hook", asJSON, `{"ref": "refs/heads/main", "after": "0000"}`, "main", "ignored"},
		"gitlab, tag":           {GitLab, "X-Gitlab-Event", "Tag Push Hook", asJSON, pushEvent, "main", "error"},
		"bitbucket":             {Bitbucket, "X-Event-Key", "repo:push", asJSON, bitbucket, "main", "abc"},
		"bitbucket, other":      {Bitbucket, "X-Event-Key", "repo:push", asJSON, bitbucket, "release", "ignored"},
		"bitbucket, server":     {Bitbucket, "X-Event-Key", "repo:refs_changed", asJSON, server, "main", "abc"},
		"bitbucket, fork":       {Bitbucket, "X-Event-Key", "repo:fork", asJSON, "{}", "main", "error"},
		"generic":               {Generic, "X-Any", "", asJSON, generic, "main", "abc"},
		"generic, other":        {Generic, "X-Any", "", asJSON, generic, "release", "ignored"},
		"generic, empty":        {Generic, "X-Any", "", "", "", "main", "build"},
		"generic, other type":   {Generic, "X-Any", "", "text/plain", "hello", "main", "build"},
		"generic, YAML":         {Generic, "X-Any", "", "application/yaml", "git: {ref: main, commit: abc}", "main", "abc"},
		"generic, secret":       {Generic, "X-Any", "", asJSON, `{"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]}`, "main", "error"},
		"generic, argument":     {Generic, "X-Any", "", "application/yaml", "dockerStrategyOptions: {buildArgs: [{name: A, valueFrom: {}}]}", "main", "error"},
		"generic, expanding":    {Generic, "X-Any", "", asJSON, `{"env": [{}` + strings.Repeat(",{}", maxValues) + `]}`, "main", "error"},
		"generic, long YAML":    {Generic, "X-Any", "", "application/yaml", "git: {ref: main}" + strings.Repeat("\n", maxYAMLBytes), "main", "error"},
		"github, expanding":     {GitHub, "X-GitHub-Event", "push", asJSON, `{"commits": [{}` + strings.Repeat(",{}", maxValues) + `]}`, "main", "error"},
		"generic, broken":       {Generic, "X-Any", "", asJSON, "hello", "main", "error"},
	} {
		header := http.Header{}
		header.Set(tt.key, tt.kind)
		header.Set("Content-Type", tt.content)
		event, err := tt.reader(Call{header, []byte(tt.body)}, &buildv1.GitBuildSource{Ref: tt.ref})
		got := "build"
		switch {
		case err != nil:
			got = "error"
		case event.Ignored != "":
			got = "ignored"
		case event.Revision != nil:
			got = event.Revision.Git.Commit
		}
		if got != tt.want {
			t.Errorf("%s: %s (%+v, %v), want %s", name, got, event, err, tt.want)
		}
	}
}

// FuzzCalls verifies that every call is rejected, is ignored, or starts a build.
func FuzzCalls(f *testing.F) {
	for _, body := range []string{pushEvent, bitbucket, server, generic, "{}", "null", `{"commits": [null], "changes": [null], "push": {"changes": [{}]}}`, "a: &a [*a]"} {
		f.Add([]byte(body), "main")
	}
	headers := map[string][]http.Header{
		"generic": {{"Content-Type": {"application/json"}}, {"Content-Type": {"application/yaml"}}},
		"github":  {{"Content-Type": {"application/json"}, "X-Github-Event": {"push"}}},
		"gitlab":  {{"Content-Type": {"application/json"}, "X-Gitlab-Event": {"Push Hook"}}},
		"bitbucket": {{"Content-Type": {"application/json"}, "X-Event-Key": {"repo:push"}},
			{"Content-Type": {"application/json"}, "X-Event-Key": {"repo:refs_changed"}}},
	}
	f.Fuzz(func(t *testing.T, body []byte, ref string) {
		for kind, reader := range Readers() {
			for _, header := range headers[kind] {
				for _, git := range []*buildv1.GitBuildSource{nil, {Ref: ref}} {
					event, err := reader(Call{header, body}, git)
					if err != nil && (event.Revision != nil || event.Ignored != "") {
						t.Errorf("%s: error %v with event %+v", kind, err, event)
					}
					if event.Revision != nil && event.Revision.Git.Commit == "" {
						t.Errorf("%s: revision without commit", kind)
					}
				}
			}
		}
	})
}
