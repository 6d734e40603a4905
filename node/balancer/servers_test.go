package balancer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/node/groupconfig"
)

func TestServersAreReadAsSaved(t *testing.T) {
	file := ServerFile(filepath.Join(t.TempDir(), "masters.json"))
	if servers, err := file.Read(); err != nil || servers != nil {
		t.Errorf("without a file: %q, %v", servers, err)
	}
	want := []string{"192.0.2.1:8443", "[2001:db8::1]:8443"}
	if err := file.Save(want); err != nil {
		t.Fatal(err)
	}
	if servers, err := file.Read(); err != nil || !slices.Equal(servers, want) {
		t.Errorf("got %q, %v", servers, err)
	}
	if err := os.WriteFile(string(file), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := file.Read(); err == nil || !strings.HasSuffix(err.Error(), "remove the file") {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestNodeOfOnlyMasterRestartsWhenMastersAreAdded(t *testing.T) {
	record := filepath.Join(t.TempDir(), "cluster.json")
	ctx, cancel := context.WithCancel(t.Context())
	if err := (Single{record}).Run(ctx, cancel); err != nil {
		t.Errorf("after a stop: %v", err)
	}
	if err := os.WriteFile(record, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Single{record}).Run(t.Context(), func() {}); !errors.Is(err, groupconfig.ErrRestart) {
		t.Errorf("after the record: %v", err)
	}
}
