package newapp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/internal/language"
)

// Source is a directory that contains an application's source, or a Git repository that contains
// such a directory.
type Source struct {
	// URL and Ref are the Git source for builds. URL is empty if the client uploads a directory.
	URL, Ref string
	// ContextDir is the directory within the repository.
	ContextDir string
	// Name is the name of the repository or directory.
	Name string
	// dir is the directory that contains the source on this machine. clone is the temporary
	// directory of a cloned repository, which Close removes, or "".
	dir, clone string
}

// Open interprets an argument: a Git URL or local directory, optionally followed by # and a Git
// reference. It does not clone the repository. context is the directory within the source, or "".
func Open(ctx context.Context, text, context string) (*Source, error) {
	location, ref, _ := strings.Cut(text, "#")
	if strings.HasPrefix(ref, "-") || strings.HasPrefix(location, "-") {
		return nil, fmt.Errorf("read source %q: a URL or a reference must not start with a dash", text)
	}
	if clean := filepath.ToSlash(filepath.Clean("/" + context)); context != "" {
		context = strings.TrimPrefix(clean, "/")
	}
	s := &Source{URL: location, Ref: ref, ContextDir: context, Name: location}
	if remote.MatchString(location) {
		return s, nil
	}
	dir, err := filepath.Abs(location)
	if err != nil {
		return nil, fmt.Errorf("find source %q: %w", text, err)
	}
	s.dir, s.Name, s.URL = dir, dir, ""
	origin, err := git(ctx, dir, "remote", "get-url", "origin")
	if err != nil {
		return s, nil // without a repository or an origin, the client uploads the files
	}
	s.URL, s.Name = withoutPassword(origin), origin
	if below, err := git(ctx, dir, "rev-parse", "--show-prefix"); err == nil && s.ContextDir == "" {
		s.ContextDir = strings.TrimSuffix(below, "/")
	} else {
		s.dir = filepath.Join(dir, filepath.FromSlash(s.ContextDir))
	}
	if branch, err := git(ctx, dir, "rev-parse", "--abbrev-ref", "HEAD"); err == nil && ref == "" && branch != "HEAD" {
		s.Ref = branch
	}
	return s, nil
}

// withoutPassword removes the user and password from a URL, unless its scheme is ssh. Passwords
// must be in a secret instead.
func withoutPassword(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndex(host, "@")
	if !ok || at < 0 || scheme == "ssh" {
		return url
	}
	return scheme + "://" + host[at+1:] + "/" + path
}

// CloneError is the error for a repository that Git cannot clone.
type CloneError struct {
	URL string
	err error
}

// Error returns a message that contains the repository's URL and the cause.
func (c *CloneError) Error() string { return fmt.Sprintf("clone %q: %v", c.URL, c.err) }

// Unwrap returns the cause.
func (c *CloneError) Unwrap() error { return c.err }

// Files returns the directory that contains the source. For a remote repository, the first call
// clones it, and Close removes the clone.
func (s *Source) Files(ctx context.Context) (string, error) {
	if s.dir != "" {
		return s.dir, nil
	}
	clone, err := os.MkdirTemp("", "oc-source-")
	if err != nil {
		return "", fmt.Errorf("clone %q: %w", s.URL, err)
	}
	s.clone = clone
	if _, err := git(ctx, "", "clone", "--quiet", "--", s.URL, clone); err != nil {
		return "", &CloneError{s.URL, err}
	}
	if s.Ref != "" {
		if err := checkout(ctx, clone, s.Ref); err != nil {
			return "", fmt.Errorf("check out %q of %q: %w", s.Ref, s.URL, err)
		}
	}
	s.dir = filepath.Join(clone, filepath.FromSlash(s.ContextDir))
	if info, err := os.Stat(s.dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("read source %q: no directory %q; see --context-dir", s.URL, s.ContextDir)
	}
	return s.dir, nil
}

// checkout checks out a branch, tag or commit in a clone. It also supports references that a clone
// does not contain, such as refs/pull/1/head.
func checkout(ctx context.Context, clone, reference string) error {
	_, err := git(ctx, clone, "checkout", "--quiet", reference, "--")
	if err == nil || !strings.HasPrefix(reference, "refs/") {
		return err
	}
	if _, err := git(ctx, clone, "fetch", "--quiet", "origin", reference); err != nil {
		return err
	}
	_, err = git(ctx, clone, "checkout", "--quiet", "FETCH_HEAD", "--")
	return err
}

// Close removes the clone, if there is one.
func (s *Source) Close() error {
	if s.clone == "" {
		return nil
	}
	return os.RemoveAll(s.clone)
}

// git runs git in a directory, without password prompts. It returns the trimmed standard output.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/true", "SSH_ASKPASS=/bin/true")
	output, err := command.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%w; install git on this machine, or set a builder image with IMAGE~SOURCE", err)
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(output)), err
}

// Language returns the programming language of the source in a directory, or "" if it is unknown.
func Language(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return language.Of(names)
}
