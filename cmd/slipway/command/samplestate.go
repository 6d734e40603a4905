package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/image/pull"
	"github.com/slipway-platform/slipway/bootstrap/samples"
	"github.com/slipway-platform/slipway/internal/filelock"
	"github.com/slipway-platform/slipway/platform/host"
)

// attempts is a directory with a file for each sample. A process locks the file while it creates
// the sample's image. The file contains the error of the last attempt, or nothing if the attempt
// succeeded.
type attempts string

func attemptsOf(h *host.Host) attempts { return attempts(h.Path("samples")) }

func (a attempts) file(name string) string { return filepath.Join(string(a), name) }

// begin waits until no other process is creating the sample's image, and records a new attempt. The
// caller must call end with the result.
func (a attempts) begin(name string) (end func(error) error, err error) {
	if err := os.MkdirAll(string(a), 0o755); err != nil {
		return nil, err
	}
	unlock, err := filelock.Lock(a.file(name), filelock.Exclusive)
	if err != nil {
		return nil, err
	}
	record := func(text string) error { return os.WriteFile(a.file(name), []byte(text), 0o600) }
	if err := record("interrupted"); err != nil {
		unlock()
		return nil, err
	}
	return func(result error) error {
		defer unlock()
		text := ""
		if result != nil {
			text = result.Error()
		}
		return errors.Join(result, record(text))
	}, nil
}

// last returns the state of the last attempt. It returns "" if the last attempt succeeded or there
// has been no attempt.
func (a attempts) last(name string) (string, error) {
	file, err := os.Open(a.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	err = unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return "in progress", nil
	}
	if err != nil {
		return "", fmt.Errorf("lock %q: %w", file.Name(), err)
	}
	text, err := io.ReadAll(file)
	if err != nil || len(text) == 0 {
		return "", err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return "failed: " + first, nil
}

// listTimeout is the timeout for the request that lists the existing images.
const listTimeout = 10 * time.Second

// sampleStates returns a function that returns the state of a sample: created, missing, in progress
// or failed.
func sampleStates(ctx context.Context, h *host.Host) (state func(*samples.Image) (string, error), err error) {
	config, err := h.AdminClient()
	if err != nil {
		return nil, err
	}
	client, err := imageclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create cluster client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := client.ImageStreams("openshift").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list image streams of project openshift: %w", err)
	}
	return func(s *samples.Image) (string, error) {
		if text, err := attemptsOf(h).last(s.Name); text != "" || err != nil {
			return text, err
		}
		exists := !slices.ContainsFunc(s.Streams, func(name string) bool {
			at := slices.IndexFunc(list.Items, func(stream imagev1.ImageStream) bool { return stream.Name == name })
			return at < 0 || pull.LatestSpec(&list.Items[at], s.Version) == ""
		})
		if exists {
			return "created", nil
		}
		return "missing", nil
	}, nil
}
