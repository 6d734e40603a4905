// Package gitfiles lists the files in a directory of a Git repository over HTTP, on behalf of
// users.
//
// It does not trust servers, and stores nothing on disk. It reads a pack only until it has found
// the directory, and limits the size of the pack and the memory for it. Servers must support
// version 2 of Git's protocol, which was introduced in 2018.
//
// Source: Git's documents gitprotocol-v2, gitprotocol-http and gitformat-pack.
package gitfiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/outbound"
)

// Place is a directory in a repository.
type Place struct {
	// URL is the repository's address, with the scheme http or https and without credentials.
	URL string
	// Ref is a branch, a tag, a full reference or a commit. Empty means the server's default branch.
	Ref string
	// Dir is a path within the repository. Empty means its root.
	Dir string
	// Login, if set, is sent to the server of URL, and to no other server.
	Login *url.Userinfo
}

// These errors mean that the repository does not exist, that the server requires a login, or that
// it rejects the login.
var (
	ErrPrivate  = errors.New("the repository does not exist, or is not public")
	ErrRejected = errors.New("the repository does not exist, or the server rejects the user and the password in the secret")
)

// List returns the names of the files and directories at a place. Its errors do not contain the
// server's responses.
func List(ctx context.Context, transport http.RoundTripper, place Place) ([]string, error) {
	if place.Login != nil {
		to, err := url.Parse(place.URL)
		if err != nil {
			return nil, errors.New("the address is not valid")
		}
		transport = &withLogin{transport, *to, place.Login}
	}
	names, err := list(ctx, transport, place)
	if errors.Is(err, ErrPrivate) && place.Login != nil {
		err = ErrRejected
	}
	return names, err
}

// withLogin is a transport that adds a user name and password to the requests to one server.
type withLogin struct {
	http.RoundTripper
	to    url.URL
	login *url.Userinfo
}

// RoundTrip adds the login, unless the server has redirected the request to another server.
func (w *withLogin) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme == w.to.Scheme && request.URL.Host == w.to.Host {
		request = request.Clone(request.Context())
		password, _ := w.login.Password()
		request.SetBasicAuth(w.login.Username(), password)
	}
	return w.RoundTripper.RoundTrip(request)
}

func list(ctx context.Context, transport http.RoundTripper, place Place) ([]string, error) {
	server, err := connect(ctx, transport, place.URL)
	if err != nil {
		return nil, err
	}
	commit := place.Ref
	if !isCommit(commit) {
		if commit, err = server.resolve(ctx, place.Ref); err != nil {
			return nil, err
		}
	}
	return server.list(ctx, commit, directories(place.Dir))
}

// directories returns the names of the directories along a path.
func directories(dir string) []string {
	clean := strings.Trim(path.Clean("/"+dir), "/")
	if clean == "" {
		return nil
	}
	return strings.Split(clean, "/")
}

var commitPattern = regexp.MustCompile(`^[0-9a-f]{40}$`)

func isCommit(ref string) bool { return commitPattern.MatchString(ref) }

// server is a repository whose server has accepted version 2 of the protocol.
type server struct {
	client *http.Client
	// base is the repository's address after redirects.
	base string
	// filters is set if the server can omit file contents.
	filters bool
}

const (
	service = "git-upload-pack"
	// protocolHeader requests version 2 of the protocol.
	protocolHeader, protocolVersion = "Git-Protocol", "version=2"
)

// connect reads a server's capabilities. It follows redirects.
func connect(ctx context.Context, transport http.RoundTripper, address string) (*server, error) {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return nil, errors.New("use an address that begins with https:// or http://")
	}
	if parsed.User != nil {
		return nil, errors.New("the address must not contain a user or a password")
	}
	const end = "/info/refs"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(parsed.String(), "/")+end+"?service="+service, nil)
	if err != nil {
		return nil, errors.New("the address is not valid")
	}
	response, err := send(&http.Client{Transport: transport}, request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // opened only for reading
	final := *response.Request.URL
	final.RawQuery = ""
	base, ok := strings.CutSuffix(final.String(), end)
	if !ok {
		return nil, errors.New("the server redirects to an address that is not a repository")
	}
	// Do not follow redirects, because the requests contain a reference name.
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	s := &server{client: client, base: base}
	return s, s.readCapabilities(newLines(response.Body, maxResponse))
}

// readCapabilities reads the response to the first request.
func (s *server) readCapabilities(lines *lines) error {
	first, err := lines.next()
	if err == nil && strings.HasPrefix(string(first), "# service=") {
		if first, err = lines.next(); err == nil && first == nil {
			first, err = lines.next()
		}
	}
	if err != nil || strings.TrimSpace(string(first)) != "version 2" {
		return errors.New("the server does not respond with version 2 of Git's protocol")
	}
	return lines.each(func(line string) error {
		switch name, value, _ := strings.Cut(line, "="); name {
		case "object-format":
			if value != "sha1" {
				return errors.New("the repository has an object format other than sha1")
			}
		case "fetch":
			s.filters = slices.Contains(strings.Fields(value), "filter")
		}
		return nil
	})
}

// send sends a request, and returns the response if its status is 200.
func send(client *http.Client, request *http.Request) (*http.Response, error) {
	request.Header.Set(protocolHeader, protocolVersion)
	response, err := client.Do(request)
	if refused := (*outbound.Refused)(nil); errors.As(err, &refused) {
		return nil, refused
	}
	if err != nil {
		return nil, errors.New("the server cannot be reached")
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	_ = response.Body.Close() // the body is not needed
	switch response.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return nil, ErrPrivate
	}
	return nil, fmt.Errorf("the server responds with status %d", response.StatusCode)
}

// command sends a command with arguments. The caller must close the response.
func (s *server) command(ctx context.Context, name string, arguments ...string) (io.ReadCloser, error) {
	var body bytes.Buffer
	writeLine(&body, "command="+name)
	writeLine(&body, "object-format=sha1")
	body.WriteString(delimiter)
	for _, argument := range arguments {
		writeLine(&body, argument)
	}
	body.WriteString(flush)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/"+service, &body)
	if err != nil {
		return nil, errors.New("the address is not valid")
	}
	request.Header.Set("Content-Type", "application/x-"+service+"-request")
	response, err := send(s.client, request)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}

// resolve returns a reference's commit.
func (s *server) resolve(ctx context.Context, ref string) (string, error) {
	if strings.ContainsFunc(ref, func(r rune) bool { return r <= ' ' }) || len(ref) > maxReference {
		return "", errors.New("the name of the reference is not valid")
	}
	names := []string{ref, "refs/heads/" + ref, "refs/tags/" + ref}
	if ref == "" {
		names = []string{"HEAD"}
	}
	arguments := []string{"peel"}
	for _, name := range names {
		arguments = append(arguments, "ref-prefix "+name)
	}
	body, err := s.command(ctx, "ls-refs", arguments...)
	if err != nil {
		return "", err
	}
	defer func() { _ = body.Close() }() // opened only for reading
	commits := map[string]string{}
	err = newLines(body, maxResponse).each(func(line string) error {
		fields := strings.Fields(line)
		if len(fields) < 2 || !slices.Contains(names, fields[1]) {
			return nil
		}
		commit := fields[0]
		for _, attribute := range fields[2:] {
			if peeled, ok := strings.CutPrefix(attribute, "peeled:"); ok {
				commit = peeled
			}
		}
		commits[fields[1]] = commit
		return nil
	})
	if err != nil {
		return "", err
	}
	for _, name := range names {
		if commit := commits[name]; isCommit(commit) {
			return commit, nil
		}
	}
	if ref == "" {
		return "", errors.New("the repository has no default branch")
	}
	return "", fmt.Errorf("branch, tag or commit %q does not exist", ref)
}

// list returns the names in a directory of a commit.
func (s *server) list(ctx context.Context, commit string, dirs []string) ([]string, error) {
	arguments := []string{"no-progress", "ofs-delta", "deepen 1", "want " + commit, "done"}
	if s.filters {
		arguments = append([]string{"filter blob:none"}, arguments...)
	}
	body, err := s.command(ctx, "fetch", arguments...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }() // opened only for reading
	lines := newLines(body, maxPack)
	for {
		line, err := lines.next()
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(string(line)) == "packfile" {
			return find(&sideband{lines: lines}, commit, dirs)
		}
		if line == nil && lines.ended {
			return nil, fmt.Errorf("commit %q does not exist", commit)
		}
	}
}
