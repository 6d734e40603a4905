package signaturestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/outbound"
)

const (
	// maxSignatures is the maximum number of signatures for an image, and maxSize is the maximum
	// size of each signature, in bytes.
	maxSignatures, maxSize = 16, 1 << 20
	// fetchTimeout is the maximum time to fetch one signature.
	fetchTimeout = 30 * time.Second
)

// Fetch returns the signatures at an address that Address returned, up to the first missing
// signature. If it cannot read a signature, it returns the preceding signatures and an error. The
// dialer connects to the servers that a store redirects to. The stores themselves are configured by
// the administrator and can have any address.
func Fetch(ctx context.Context, dialer *outbound.Dialer, address string) (all [][]byte, err error) {
	if address == "" {
		return nil, nil
	}
	for number := 1; number <= maxSignatures; number++ {
		content, err := fetch(ctx, dialer, address+strconv.Itoa(number))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return all, err
		}
		all = append(all, content)
	}
	return all, nil
}

// fetch reads a signature from a file or a server. If the signature does not exist, it returns
// fs.ErrNotExist.
func fetch(ctx context.Context, dialer *outbound.Dialer, address string) ([]byte, error) {
	if name, local := strings.CutPrefix(address, "file://"); local {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // opened only for reading
		return limited(file)
	}
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	transport := dialer.With(parsed.Host).Transport(false)
	defer transport.CloseIdleConnections()
	ctx, done := context.WithTimeout(ctx, fetchTimeout)
	defer done()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, parsed.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // opened only for reading
	switch response.StatusCode {
	case http.StatusOK:
		return limited(response.Body)
	case http.StatusNotFound:
		return nil, fs.ErrNotExist
	}
	return nil, fmt.Errorf("read %q: the server responds with status %d", parsed.Redacted(), response.StatusCode)
}

func limited(content io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(content, maxSize+1))
	if err == nil && len(data) > maxSize {
		return nil, fmt.Errorf("read signature: it has more than %d bytes", maxSize)
	}
	return data, err
}
