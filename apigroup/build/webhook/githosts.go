package webhook

import (
	"fmt"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
)

// commit is a commit in the format of GitHub, GitLab and Gogs.
type commit struct {
	ID        string                    `json:"id"`
	Message   string                    `json:"message"`
	Author    buildv1.SourceControlUser `json:"author"`
	Committer buildv1.SourceControlUser `json:"committer"`
}

func (c *commit) revision() *buildv1.SourceRevision {
	return revision(c.ID, c.Message, c.Author, c.Committer)
}

// GitHub decodes GitHub and Gogs events. A push starts a build. A ping is ignored.
func GitHub(call Call, git *buildv1.GitBuildSource) (Event, error) {
	kind := call.Header.Get("X-GitHub-Event")
	if kind == "" {
		kind = call.Header.Get("X-Gogs-Event")
	}
	var payload struct {
		Ref        string   `json:"ref"`
		Deleted    bool     `json:"deleted"`
		HeadCommit *commit  `json:"head_commit"`
		Commits    []commit `json:"commits"`
	}
	switch kind {
	case "":
		return Event{}, fmt.Errorf("missing X-GitHub-Event or X-Gogs-Event")
	case "ping":
		return ignored("pong")
	case "push":
	default:
		return Event{}, fmt.Errorf("unknown X-GitHub-Event or X-Gogs-Event %q", kind)
	}
	if err := decode(call, &payload); err != nil {
		return Event{}, err
	}
	switch {
	case !matches(payload.Ref, git):
		return ignored("skipping build. Branch reference from %q does not match configuration", payload.Ref)
	case payload.Deleted:
		return ignored("skipping build. %q was deleted", payload.Ref)
	case payload.HeadCommit != nil:
		return Event{Revision: payload.HeadCommit.revision()}, nil
	case len(payload.Commits) > 0: // Gogs sends the newest commit first
		return Event{Revision: payload.Commits[0].revision()}, nil
	}
	return Event{}, nil
}

// GitLab decodes GitLab push events.
func GitLab(call Call, git *buildv1.GitBuildSource) (Event, error) {
	if kind := call.Header.Get("X-Gitlab-Event"); kind != "Push Hook" {
		return Event{}, fmt.Errorf("unknown X-Gitlab-Event %q: only Push Hook starts builds", kind)
	}
	var payload struct {
		Ref     string   `json:"ref"`
		After   string   `json:"after"`
		Commits []commit `json:"commits"`
	}
	if err := decode(call, &payload); err != nil {
		return Event{}, err
	}
	if !matches(payload.Ref, git) {
		return ignored("skipping build. Branch reference from %q does not match configuration", payload.Ref)
	}
	if payload.After != "" && strings.Trim(payload.After, "0") == "" {
		return ignored("skipping build. %q was deleted", payload.Ref)
	}
	i := slices.IndexFunc(payload.Commits, func(c commit) bool { return c.ID == payload.After })
	if i < 0 {
		i = len(payload.Commits) - 1 // use the newest commit
	}
	if i < 0 {
		return Event{Revision: revision(payload.After, "", buildv1.SourceControlUser{}, buildv1.SourceControlUser{})}, nil
	}
	newest := &payload.Commits[i]
	if newest.Committer.Name == "" {
		newest.Committer = newest.Author // GitLab sends no committer
	}
	return Event{Revision: newest.revision()}, nil
}

// Bitbucket decodes push events from Bitbucket Cloud and Bitbucket Server.
func Bitbucket(call Call, git *buildv1.GitBuildSource) (Event, error) {
	switch kind := call.Header.Get("X-Event-Key"); kind {
	case "repo:push":
		return bitbucketPush(call, git)
	case "repo:refs_changed":
		return bitbucketServer(call, git)
	case "diagnostics:ping":
		return ignored("pong")
	default:
		return Event{}, fmt.Errorf("unknown X-Event-Key %q: only repo:push and repo:refs_changed start builds", kind)
	}
}

func bitbucketPush(call Call, git *buildv1.GitBuildSource) (Event, error) {
	var payload struct {
		Push struct {
			Changes []struct {
				New *struct {
					Name   string `json:"name"`
					Target struct {
						Hash    string `json:"hash"`
						Message string `json:"message"`
						Author  struct {
							Raw string `json:"raw"`
						} `json:"author"`
					} `json:"target"`
				} `json:"new"`
			} `json:"changes"`
		} `json:"push"`
	}
	if err := decode(call, &payload); err != nil {
		return Event{}, err
	}
	for _, change := range payload.Push.Changes {
		if change.New != nil && matches(change.New.Name, git) {
			target := change.New.Target
			user := parseUser(target.Author.Raw)
			return Event{Revision: revision(target.Hash, target.Message, user, user)}, nil
		}
	}
	return ignored("skipping build. None of the changed references matches configuration")
}

func bitbucketServer(call Call, git *buildv1.GitBuildSource) (Event, error) {
	var payload struct {
		Actor struct {
			DisplayName  string `json:"displayName"`
			EmailAddress string `json:"emailAddress"`
		} `json:"actor"`
		Changes []struct {
			Ref struct {
				ID string `json:"id"`
			} `json:"ref"`
			ToHash string `json:"toHash"`
			Type   string `json:"type"`
		} `json:"changes"`
	}
	if err := decode(call, &payload); err != nil {
		return Event{}, err
	}
	user := buildv1.SourceControlUser{Name: payload.Actor.DisplayName, Email: payload.Actor.EmailAddress}
	for _, change := range payload.Changes {
		if change.Type != "DELETE" && matches(change.Ref.ID, git) {
			return Event{Revision: revision(change.ToHash, "", user, user)}, nil
		}
	}
	return ignored("skipping build. None of the changed references matches configuration")
}

// parseUser parses "Name <address>".
func parseUser(raw string) buildv1.SourceControlUser {
	name, rest, ok := strings.Cut(raw, "<")
	if !ok {
		return buildv1.SourceControlUser{Name: strings.TrimSpace(raw)}
	}
	email, _, _ := strings.Cut(rest, ">")
	return buildv1.SourceControlUser{Name: strings.TrimSpace(name), Email: email}
}
