package newapp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Source is a directory with the source of an application, or a Git repository that has one.
type Source struct {
	// URL and Ref are where builds get the source from; URL is empty where it is sent to them from
	// a directory.
	URL, Ref string
	// ContextDir is the directory within the repository.
	ContextDir string
	// Name is what the repository or directory is called.
	Name string
	// dir is the source on this machine, and clone what is to be removed afterwards, or empty.
	dir, clone string
}

// Open finds the source that a text names. A repository is cloned only when Files is called.
// context is the directory within it, or empty.
func Open(ctx context.Context, text, context string) (*Source, error) {
	location, ref, _ := strings.Cut(text, "#")
	if strings.HasPrefix(ref, "-") || strings.HasPrefix(location, "-") {
		return nil, fmt.Errorf("read source %q: neither a URL nor a reference begins with a dash", text)
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
		return s, nil // not a repository, or one that is nowhere else: builds get its files
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

// withoutPassword takes the user and password out of a URL, which belong in a secret.
func withoutPassword(url string) string {
	scheme, rest, found := strings.Cut(url, "://")
	host, path, _ := strings.Cut(rest, "/")
	at := strings.LastIndex(host, "@")
	if !found || at < 0 || scheme == "ssh" {
		return url
	}
	return scheme + "://" + host[at+1:] + "/" + path
}

// Files is the directory with the files of the source, those of a repository after a clone.
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
		return "", fmt.Errorf("clone %q: %w", s.URL, err)
	}
	if s.Ref != "" {
		if _, err := git(ctx, clone, "checkout", "--quiet", s.Ref, "--"); err != nil {
			return "", fmt.Errorf("check out %q of %q: %w", s.Ref, s.URL, err)
		}
	}
	s.dir = filepath.Join(clone, filepath.FromSlash(s.ContextDir))
	if info, err := os.Stat(s.dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("read source %q: it has no directory %q; see --context-dir", s.URL, s.ContextDir)
	}
	return s.dir, nil
}

// Close removes what was cloned.
func (s *Source) Close() error {
	if s.clone == "" {
		return nil
	}
	return os.RemoveAll(s.clone)
}

// git runs git, which never asks for a password, in a directory.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=/bin/true", "SSH_ASKPASS=/bin/true")
	output, err := command.Output()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%w; install git on this machine, or name a builder image as IMAGE~SOURCE", err)
	}
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimSpace(string(failed.Stderr)))
	}
	return strings.TrimSpace(string(output)), err
}

// languages are the files by which a language is known, in the order in which they are looked for.
var languages = []struct {
	name  string
	files []string
}{
	{"jee", []string{"pom.xml"}},
	{"ruby", []string{"Gemfile", "Rakefile", "config.ru"}},
	{"nodejs", []string{"app.json", "package.json"}},
	{"php", []string{"composer.json", "index.php"}},
	{"python", []string{"requirements.txt", "setup.py"}},
	{"perl", []string{"cpanfile", "index.pl"}},
	{"scala", []string{"build.sbt"}},
	{"dotnet", []string{"project.json", "*.csproj"}},
	{"golang", []string{"go.mod", "Godeps", "main.go"}},
}

// Language is what the source in a directory is written in, or "".
func Language(dir string) string {
	for _, language := range languages {
		if slices.ContainsFunc(language.files, func(pattern string) bool {
			found, _ := filepath.Glob(filepath.Join(quoted(dir), pattern)) // the patterns are right
			return len(found) > 0
		}) {
			return language.name
		}
	}
	return ""
}

// quoted makes a path a pattern that matches it alone.
func quoted(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
