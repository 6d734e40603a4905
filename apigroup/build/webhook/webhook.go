// Package webhook reads what the hosts of Git repositories send when something was pushed, and says whether a build shall follow and of what. It reads bytes
// that anybody may have sent, and does nothing else.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.6.1 Builds; OpenShift 3.11, webhook triggers; the formats are those that GitHub, GitLab,
// Bitbucket and Gogs describe.
package webhook

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/jsonlimit"
)

// Call is what was sent.
type Call struct {
	Header http.Header
	Body   []byte
}

// Event is what a call means.
type Event struct {
	// Ignored says why no build follows; empty when one does.
	Ignored string
	// Revision is what was pushed, nil where the call does not say.
	Revision *buildv1.SourceRevision
	// Env and Options are what a generic hook asks for.
	Env     []corev1.EnvVar
	Options *buildv1.DockerStrategyOptions
}

// ignored is an event that no build follows.
func ignored(format string, values ...any) (Event, error) {
	return Event{Ignored: fmt.Sprintf(format, values...)}, nil
}

// Reader reads calls of one kind of hook. git is the source of the configuration, nil for another source. An error says what is wrong with the call.
type Reader func(call Call, git *buildv1.GitBuildSource) (Event, error)

// Readers are the kinds of hooks, by the last part of their addresses.
func Readers() map[string]Reader {
	return map[string]Reader{"generic": Generic, "github": GitHub, "gitlab": GitLab, "bitbucket": Bitbucket}
}

// matches says whether a pushed ref, such as "refs/heads/main", is the one that a source is built from, by default "master". A source of another kind is built from
// all.
func matches(ref string, git *buildv1.GitBuildSource) bool {
	if git == nil {
		return true
	}
	built := git.Ref
	if built == "" {
		built = "master"
	}
	short := func(ref string) string {
		return strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/tags/")
	}
	return short(ref) == short(built)
}

// revision is a commit as a build has it, nil for none.
func revision(commit, message string, author, committer buildv1.SourceControlUser) *buildv1.SourceRevision {
	if commit == "" {
		return nil
	}
	return &buildv1.SourceRevision{Type: buildv1.BuildSourceGit, Git: &buildv1.GitSourceRevision{
		Commit: commit, Message: message, Author: author, Committer: committer,
	}}
}

// Generic reads a GenericWebHookEvent, JSON or YAML. A call without one starts a build too.
func Generic(call Call, git *buildv1.GitBuildSource) (Event, error) {
	if len(call.Body) == 0 {
		return Event{}, nil
	}
	media, _, err := mime.ParseMediaType(call.Header.Get("Content-Type"))
	read := json.Unmarshal
	switch {
	case err == nil && media == "application/json":
	case err == nil && (media == "application/yaml" || media == "application/x-yaml"):
		read = func(body []byte, into any) error { return yaml.Unmarshal(body, into) }
	default: // not for us, as 3.11 has it
		return Event{}, nil
	}
	if err := jsonlimit.Check(call.Body, maxValues); err != nil {
		return Event{}, fmt.Errorf("read body: %w", err)
	}
	if media != "application/json" && len(call.Body) > maxYAML {
		return Event{}, fmt.Errorf("read body: YAML may have %d bytes: send JSON", maxYAML)
	}
	var sent buildv1.GenericWebHookEvent
	if err := read(call.Body, &sent); err != nil {
		return Event{}, fmt.Errorf("read body as %s: %w", media, err)
	}
	event := Event{Env: sent.Env, Options: sent.DockerStrategyOptions}
	variables := sent.Env
	if event.Options != nil {
		variables = slices.Concat(variables, event.Options.BuildArgs)
	}
	for _, variable := range variables {
		if variable.ValueFrom != nil { // whoever knows a hook's secret may not have others put into images
			return Event{}, fmt.Errorf("variable %q has no value: a webhook may give values, and not refer to them by valueFrom", variable.Name)
		}
	}
	if git == nil || sent.Git == nil {
		return event, nil
	}
	if len(sent.Git.Refs) == 0 {
		if !matches(sent.Git.Ref, git) {
			return ignored("skipping build. Branch reference from %q does not match configuration", sent.Git.Ref)
		}
		event.Revision = revision(sent.Git.Commit, sent.Git.Message, sent.Git.Author, sent.Git.Committer)
		return event, nil
	}
	for _, ref := range sent.Git.Refs {
		if matches(ref.Ref, git) {
			event.Revision = revision(ref.Commit, ref.Message, ref.Author, ref.Committer)
			return event, nil
		}
	}
	return ignored("skipping build. None of the supplied refs matched %q", git.Ref)
}

const (
	// maxValues bounds the JSON values of a body, which are decoded into more memory than they have
	// bytes.
	maxValues = 200_000
	// maxYAML bounds a body of YAML, whose values cannot be counted before it is decoded, in bytes.
	maxYAML = 256 << 10
)

// decode reads a body that must be JSON.
func decode(call Call, into any) error {
	if media, _, err := mime.ParseMediaType(call.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return fmt.Errorf("non-parseable Content-Type %q: send application/json", call.Header.Get("Content-Type"))
	}
	if err := jsonlimit.Check(call.Body, maxValues); err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	if err := json.Unmarshal(call.Body, into); err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	return nil
}
