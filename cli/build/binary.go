package build

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/docker/go-units"
	"github.com/klauspost/compress/gzip"
	buildv1 "github.com/openshift/api/build/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Source is the local source of a build. At most one of File, Dir, Repo and Archive is set. "-"
// means standard input.
type Source struct {
	// File is uploaded under its own name. Dir and Repo are uploaded as archives. Archive is
	// uploaded unchanged. File and Archive can be HTTP or HTTPS URLs.
	File, Dir, Repo, Archive string
	// Commit is the commit of Repo to upload. The default is the commit that is checked out. For
	// other sources, Commit is only recorded in the build's revision.
	Commit string
	// Exclude matches the paths in Dir that are not uploaded. If it is nil, all paths are uploaded.
	Exclude *regexp.Regexp
	// In is standard input. Progress receives messages for the user.
	In       io.Reader
	Progress io.Writer
}

// IsSet reports whether any of the paths is set.
func (s *Source) IsSet() bool { return s.File != "" || s.Dir != "" || s.Repo != "" || s.Archive != "" }

// Upload starts a build from a build config and uploads its source. While the build is pending,
// Upload writes the reason to source.Progress.
func (c *Client) Upload(ctx context.Context, config string, source *Source) (*buildv1.Build, error) {
	before, err := c.BuildConfigs(c.Namespace).Get(ctx, config, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	content, options, err := source.open(ctx)
	if err != nil {
		return nil, err
	}
	done, progress := make(chan struct{}), &serial{out: source.Progress}
	teeCtx, stop := context.WithCancel(ctx)
	go func() {
		defer close(done)
		// Ignore errors, such as a lack of permission to get builds, because the upload does not
		// depend on these messages.
		_ = c.watch(teeCtx, newNotifier(progress, c.clock), c.started(teeCtx, config, before.Status.LastVersion))
	}()
	defer func() { stop(); <-done }()
	content = &countingReader{ReadCloser: content, progress: progress}
	request := c.RESTClient().Post().Namespace(c.Namespace).Resource("buildconfigs").Name(config).SubResource("instantiatebinary")
	for name, value := range options {
		if value != "" {
			request = request.Param(name, value)
		}
	}
	build := &buildv1.Build{}
	err = request.Body(io.Reader(content)).SetHeader("Content-Type", "application/octet-stream").Do(ctx).Into(build)
	_ = content.Close() // if reading content fails, the request also fails
	if err != nil {
		return nil, fmt.Errorf("upload source: %w", err)
	}
	return build, nil
}

// serial is a writer that serializes concurrent writes.
type serial struct {
	mu  sync.Mutex
	out io.Writer
}

func (s *serial) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

// countingReader writes the number of bytes read to progress when it reaches the end of the
// content.
type countingReader struct {
	io.ReadCloser
	progress io.Writer
	size     int64
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if c.size += int64(n); err == io.EOF {
		fmt.Fprintf(c.progress, "Uploading finished: %s\n", units.HumanSize(float64(c.size)))
	}
	return n, err
}

// open opens the source. options are query parameters of the request.
func (s *Source) open(ctx context.Context) (content io.ReadCloser, options map[string]string, err error) {
	say := func(noun, path string) {
		if path == "-" {
			path = "STDIN"
		}
		fmt.Fprintf(s.Progress, "Uploading %s %q as binary input for the build ...\n", noun, path)
	}
	switch {
	case s.Repo != "":
		say("Git repository", s.Repo)
		return s.openRepo(ctx)
	case s.Dir != "" && s.Dir != "-":
		say("directory", s.Dir)
		info, err := os.Stat(s.Dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory; use --from-file or --from-archive", s.Dir)
		}
		if err != nil {
			return nil, nil, err
		}
		return pipeFrom(func(out io.Writer) error { return pack(out, s.Dir, s.Exclude) }), map[string]string{"revision.commit": s.Commit}, nil
	case s.File != "":
		say("file", s.File)
		name := "Dockerfile"
		if s.File != "-" {
			name = filepath.Base(s.File)
		}
		content, err = s.openFile(ctx, s.File)
		return content, map[string]string{"asFile": name, "revision.commit": s.Commit}, err
	}
	path := s.Archive + s.Dir // only one of them is set, and a directory cannot be standard input
	say("archive", path)
	content, err = s.openFile(ctx, path)
	return content, map[string]string{"revision.commit": s.Commit}, err
}

// openFile opens a file, a URL or standard input.
func (s *Source) openFile(ctx context.Context, path string) (io.ReadCloser, error) {
	switch {
	case path == "-":
		return io.NopCloser(s.In), nil
	case !strings.HasPrefix(path, "http://") && !strings.HasPrefix(path, "https://"):
		return os.Open(path)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("read %s: the server responds with %s", path, response.Status)
	}
	return response.Body, nil
}

// openRepo returns an archive of a commit, created by git, and the commit's metadata as options.
func (s *Source) openRepo(ctx context.Context) (io.ReadCloser, map[string]string, error) {
	commit := s.Commit
	if commit == "" {
		commit = "HEAD"
	}
	text, err := exec.CommandContext(ctx, "git", "-C", s.Repo, "log", "-1", "--format=%H%n%an%n%ae%n%cn%n%ce%n%s", "--end-of-options", commit, "--").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("find commit %q in the repository %q: %w", commit, s.Repo, withStderr(err))
	}
	lines := strings.SplitN(strings.TrimSuffix(string(text), "\n"), "\n", 6)
	options := map[string]string{}
	for i, name := range []string{"commit", "authorName", "authorEmail", "committerName", "committerEmail", "message"} {
		if i < len(lines) {
			options["revision."+name] = lines[i]
		}
	}
	return pipeFrom(func(out io.Writer) error {
		archive := exec.CommandContext(ctx, "git", "-C", s.Repo, "archive", "--format=tar.gz", lines[0])
		archive.Stdout = out
		var text strings.Builder
		archive.Stderr = &text
		if err := archive.Run(); err != nil {
			return fmt.Errorf("archive commit %q: %w: %s", commit, err, strings.TrimSpace(text.String()))
		}
		return nil
	}), options, nil
}

// withStderr adds a program's standard error to the error that the program returned.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	return err
}

// pipeFrom returns a reader for the output of write. If the caller closes the reader, write fails.
func pipeFrom(write func(io.Writer) error) io.ReadCloser {
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(write(writer)) }() // write ends when the reader is closed
	return reader
}

// pack writes a directory as a gzip-compressed tar archive. The archive contains only files,
// directories and symbolic links, and omits paths that match exclude.
func pack(out io.Writer, dir string, exclude *regexp.Regexp) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	// Compress quickly, because upload speed matters more than archive size.
	zipped, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zipped)
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".":
			return nil
		case exclude != nil && exclude.MatchString(path):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		return packOne(archive, root, path, entry)
	})
	return errors.Join(err, archive.Close(), zipped.Close())
}

func packOne(archive *tar.Writer, root *os.Root, path string, entry fs.DirEntry) error {
	info, err := entry.Info()
	if err != nil {
		return err
	}
	link := ""
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		if link, err = root.Readlink(path); err != nil {
			return err
		}
	case !info.Mode().IsRegular() && !info.IsDir():
		return nil
	}
	header, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	header.Name = path
	if info.IsDir() {
		header.Name += "/"
	}
	// Remove the owner, because this machine's users do not exist in the build container.
	header.Uid, header.Gid, header.Uname, header.Gname = 0, 0, "", ""
	if err := archive.WriteHeader(header); err != nil || !info.Mode().IsRegular() {
		return err
	}
	file, err := root.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = io.Copy(archive, file)
	return err
}
