package builder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/object"
	buildv1 "github.com/openshift/api/build/v1"

	"github.com/slipway-platform/slipway/builder/source"
	"github.com/slipway-platform/slipway/internal/buildpod"
)

// fetch fetches the source, and sets context to the context directory.
func (r *run) fetch(ctx context.Context) error {
	dir, err := r.directory("source")
	if err != nil {
		return err
	}
	spec := r.Build.Spec.Source
	switch {
	case spec.Binary != nil:
		err = r.timed(buildv1.StageFetchInputs, "FetchBinarySource", func() error { return r.receive(ctx, dir, spec.Binary.AsFile) })
	case spec.Git != nil:
		err = r.timed(buildv1.StageFetchInputs, buildv1.StepFetchGitSource, func() error { return r.clone(ctx, dir, spec.Git) })
	}
	if err != nil {
		return withReason(buildv1.StatusReasonFetchSourceFailed, err)
	}
	r.context, err = contextDir(dir, spec.ContextDir)
	return withReason(buildv1.StatusReasonInvalidContextDirectory, err)
}

// contextDir returns the path of a directory in the source. It does not follow symbolic links that
// lead out of the source.
func contextDir(dir, name string) (string, error) {
	name = filepath.Clean("./" + name)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	sub, err := root.OpenRoot(name)
	if err != nil {
		return "", fmt.Errorf("open context directory: %w", err)
	}
	defer sub.Close()
	return filepath.EvalSymlinks(filepath.Join(dir, name))
}

// receive reads the source of a binary build from r.In. It stores the source in dir as file, or
// extracts it as an archive if file is empty.
func (r *run) receive(ctx context.Context, dir, file string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if file != "" {
		fmt.Fprintf(r.Out, "Receiving source from STDIN as file %s\n", file)
		return source.Store(ctx, r.In, root, file, r.Limit)
	}
	fmt.Fprintln(r.Out, "Receiving source from STDIN as archive ...")
	return source.Extract(ctx, r.In, root, r.Limit)
}

// clone clones a repository, and records the commit in the Build.
func (r *run) clone(ctx context.Context, dir string, spec *buildv1.GitBuildSource) error {
	g, err := r.repository(spec)
	if err != nil {
		return err
	}
	if revision := r.Build.Spec.Revision; revision != nil && revision.Git != nil && revision.Git.Commit != "" {
		g.Ref = revision.Git.Commit
	}
	fmt.Fprintf(r.Out, "Cloning %q ...\n", source.Anonymous(spec.URI))
	commit, err := g.Clone(ctx, dir)
	if err != nil {
		return err
	}
	r.Build.Spec.Revision = revisionOf(commit)
	git := r.Build.Spec.Revision.Git
	fmt.Fprintf(r.Out, "\tCommit:\t%s (%s)\n\tAuthor:\t%s <%s>\n\tDate:\t%s\n", git.Commit, git.Message, git.Author.Name, git.Author.Email, commit.Author.When)
	if err := r.Report(ctx, r.Build); err != nil {
		fmt.Fprintf(r.Out, "warning: cannot record the commit: %v\n", err)
	}
	return nil
}

// repository returns the source repository, with its credentials and proxies.
func (r *run) repository(spec *buildv1.GitBuildSource) (source.Git, error) {
	secret, err := source.ReadSecret(filepath.Join(r.Secrets, buildpod.SourceSecret))
	g := r.Git
	g.URL, g.Ref, g.Secret, g.Limit, g.Out = spec.URI, spec.Ref, secret, r.Limit, r.Out
	g.Proxy = source.Proxy{
		HTTP:  first(value(spec.HTTPProxy), secret.Proxy, r.Variable("HTTP_PROXY"), r.Variable("http_proxy")),
		HTTPS: first(value(spec.HTTPSProxy), secret.Proxy, r.Variable("HTTPS_PROXY"), r.Variable("https_proxy")),
		No:    first(value(spec.NoProxy), r.Variable("NO_PROXY"), r.Variable("no_proxy")),
	}
	return g, err
}

// maxRevisionText is the maximum length, in characters, of each commit string in a Build and its
// image. The limit is necessary because the repository's authors choose these strings.
const maxRevisionText = 1000

func truncate(text string) string {
	if short := []rune(text); len(short) > maxRevisionText {
		return string(short[:maxRevisionText-3]) + "..."
	}
	return text
}

// revisionOf returns the commit data that is recorded in a Build. It contains only the first line
// of the commit message.
func revisionOf(commit *object.Commit) *buildv1.SourceRevision {
	subject, _, _ := strings.Cut(strings.TrimSpace(commit.Message), "\n")
	user := func(signature object.Signature) buildv1.SourceControlUser {
		return buildv1.SourceControlUser{Name: truncate(signature.Name), Email: truncate(signature.Email)}
	}
	return &buildv1.SourceRevision{Type: buildv1.BuildSourceGit, Git: &buildv1.GitSourceRevision{
		Commit: commit.Hash.String(), Author: user(commit.Author), Committer: user(commit.Committer), Message: truncate(subject),
	}}
}

func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// first returns the first nonempty string.
func first(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
