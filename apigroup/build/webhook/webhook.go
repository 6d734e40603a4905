// Package webhook decodes the calls that Git hosts send after a push. It decides whether to start a
// build, and for which revision. It treats calls as untrusted input.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.6.1 Builds; OpenShift 3.11, webhook
// triggers; the documentation of GitHub, GitLab, Bitbucket and Gogs.
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
	"github.com/slipway-platform/slipway/internal/yamllimit"
)

// Call is a Git host's request.
type Call struct {
	Header http.Header
	Body   []byte
}

// Event is the result of decoding a call.
type Event struct {
	// Ignored explains why the call does not start a build. If Ignored is empty, the call starts a
	// build.
	Ignored string
	// Revision is the pushed revision, or nil if the call does not contain a revision.
	Revision *buildv1.SourceRevision
	// Env and Options contain the settings from a generic call.
	Env     []corev1.EnvVar
	Options *buildv1.DockerStrategyOptions
}

// ignored returns an event that does not start a build.
func ignored(format string, values ...any) (Event, error) {
	return Event{Ignored: fmt.Sprintf(format, values...)}, nil
}

// Reader decodes calls of one kind. git is the configuration's Git source, or nil. The error
// describes why the call is invalid.
type Reader func(call Call, git *buildv1.GitBuildSource) (Event, error)

// Readers returns the readers, keyed by webhook kind, which is the last segment of the URL.
func Readers() map[string]Reader {
	return map[string]Reader{"generic": Generic, "github": GitHub, "gitlab": GitLab, "bitbucket": Bitbucket}
}

// matches reports whether a pushed ref, such as "refs/heads/main", is the configured ref, which is
// "master" by default. If there is no Git source, all refs match.
func matches(ref string, git *buildv1.GitBuildSource) bool {
	if git == nil {
		return true
	}
	configured := git.Ref
	if configured == "" {
		configured = "master"
	}
	short := func(ref string) string {
		return strings.TrimPrefix(strings.TrimPrefix(ref, "refs/heads/"), "refs/tags/")
	}
	return short(ref) == short(configured)
}

// revision returns a source revision, or nil if there is no commit.
func revision(commit, message string, author, committer buildv1.SourceControlUser) *buildv1.SourceRevision {
	if commit == "" {
		return nil
	}
	return &buildv1.SourceRevision{Type: buildv1.BuildSourceGit, Git: &buildv1.GitSourceRevision{
		Commit: commit, Message: message, Author: author, Committer: committer,
	}}
}

// Generic decodes a GenericWebHookEvent in JSON or YAML. A call without an event also starts a
// build.
func Generic(call Call, git *buildv1.GitBuildSource) (Event, error) {
	if len(call.Body) == 0 {
		return Event{}, nil
	}
	media, _, err := mime.ParseMediaType(call.Header.Get("Content-Type"))
	read := json.Unmarshal
	switch {
	case err == nil && media == "application/json":
	case err == nil && (media == "application/yaml" || media == "application/x-yaml"):
		read = func(body []byte, into any) error {
			if err := yamllimit.Check(body, maxValues, maxYAMLBytes); err != nil {
				return err
			}
			return yaml.Unmarshal(body, into)
		}
	default: // ignored, as in OpenShift 3.11
		return Event{}, nil
	}
	if err := jsonlimit.Check(call.Body, maxValues); err != nil {
		return Event{}, fmt.Errorf("read body: %w", err)
	}
	if media != "application/json" && len(call.Body) > maxYAMLBytes {
		return Event{}, fmt.Errorf("read body: YAML can have at most %d bytes: send JSON", maxYAMLBytes)
	}
	var payload buildv1.GenericWebHookEvent
	if err := read(call.Body, &payload); err != nil {
		return Event{}, fmt.Errorf("read body as %s: %w", media, err)
	}
	event := Event{Env: payload.Env, Options: payload.DockerStrategyOptions}
	variables := payload.Env
	if event.Options != nil {
		variables = slices.Concat(variables, event.Options.BuildArgs)
	}
	for _, variable := range variables {
		if variable.ValueFrom != nil { // a caller must not read the project's secrets
			return Event{}, fmt.Errorf("variable %q has no value: a webhook does not support valueFrom", variable.Name)
		}
	}
	if git == nil || payload.Git == nil {
		return event, nil
	}
	if len(payload.Git.Refs) == 0 {
		if !matches(payload.Git.Ref, git) {
			return ignored("skipping build. Branch reference from %q does not match configuration", payload.Git.Ref)
		}
		event.Revision = revision(payload.Git.Commit, payload.Git.Message, payload.Git.Author, payload.Git.Committer)
		return event, nil
	}
	for _, ref := range payload.Git.Refs {
		if matches(ref.Ref, git) {
			event.Revision = revision(ref.Commit, ref.Message, ref.Author, ref.Committer)
			return event, nil
		}
	}
	return ignored("skipping build. None of the supplied refs matched %q", git.Ref)
}

const (
	// maxValues is the maximum number of JSON values in a body. It limits the memory for decoded
	// values, which exceeds the size of their text.
	maxValues = 200_000
	// maxYAMLBytes is the maximum size of a YAML body in bytes, before and after its aliases are
	// expanded.
	maxYAMLBytes = 256 << 10
)

// decode decodes the JSON body of a call. It rejects other content types, and bodies that contain
// too many values.
func decode(call Call, into any) error {
	if media, _, err := mime.ParseMediaType(call.Header.Get("Content-Type")); err != nil || media != "application/json" {
		return fmt.Errorf("non-parseable Content-Type %q; send application/json", call.Header.Get("Content-Type"))
	}
	if err := jsonlimit.Check(call.Body, maxValues); err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	if err := json.Unmarshal(call.Body, into); err != nil {
		return fmt.Errorf("read body: %w", err)
	}
	return nil
}
