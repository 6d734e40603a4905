package content

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/docker/go-units"
	"golang.org/x/term"
)

// drawInterval is the minimum time between updates of the progress line on a terminal.
const drawInterval = 200 * time.Millisecond

// progress reports uploads to registries. On a terminal, it updates a single line. Otherwise, it
// prints one line per uploaded layer.
type progress struct {
	out      io.Writer
	terminal bool

	lock     sync.Mutex
	size     int64
	lastDraw time.Time
}

func newProgress(out io.Writer) *progress {
	file, ok := out.(*os.File)
	return &progress{out: out, terminal: ok && term.IsTerminal(int(file.Fd()))}
}

// progressTransport is a transport that reports blob uploads to progress.
type progressTransport struct {
	http.RoundTripper
	progress *progress
}

// RoundTrip sends a request and counts the bytes that it uploads.
func (w progressTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	repository, _, upload := strings.Cut(strings.TrimPrefix(request.URL.Path, "/v2/"), "/blobs/uploads/")
	if upload && request.Body != nil && (request.Method == http.MethodPatch || request.Method == http.MethodPut) {
		request = request.Clone(request.Context())
		request.Body = &countedBody{request.Body, w.progress}
	}
	response, err := w.RoundTripper.RoundTrip(request)
	if digest := request.URL.Query().Get("digest"); err == nil && upload && digest != "" && response.StatusCode == http.StatusCreated {
		w.progress.arrived(repository, digest)
	}
	return response, err
}

type countedBody struct {
	io.ReadCloser
	progress *progress
}

// Read reads from the body and adds the number of bytes to the progress.
func (c *countedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.progress.add(n)
	return n, err
}

func (p *progress) add(n int) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.size += int64(n)
	if p.terminal && time.Since(p.lastDraw) > drawInterval {
		p.lastDraw = time.Now()
		fmt.Fprintf(p.out, "\r\x1b[Kuploading: %s sent", units.HumanSize(float64(p.size)))
	}
}

func (p *progress) arrived(repository, digest string) {
	if !p.terminal {
		p.line(p.out, fmt.Sprintf("uploaded: %s %s", repository, digest))
	}
}

// line erases the progress line, and prints text as a permanent line.
func (p *progress) line(out io.Writer, text string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.clear()
	fmt.Fprintln(out, text)
}

// end erases the progress line.
func (p *progress) end() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.clear()
}

func (p *progress) clear() {
	if !p.lastDraw.IsZero() {
		fmt.Fprint(p.out, "\r\x1b[K")
		p.lastDraw = time.Time{}
	}
}
