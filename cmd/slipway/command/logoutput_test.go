package command

import (
	"bytes"
	"errors"
	"log"
	"log/slog"
	"os"
	"strings"
	"testing"

	"k8s.io/klog/v2"
)

func TestLogsOfUpstreamLibrariesPassRedaction(t *testing.T) {
	var out bytes.Buffer
	setLogOutput(&out)
	t.Cleanup(func() {
		klog.ClearLogger()
		log.SetOutput(os.Stderr)
	})
	const url = "https://bob:s3cret@git.example.com/app"
	klog.Infof("fetch %s", url)
	klog.ErrorS(errors.New("get "+url+": refused"), "fetch", "url", url)
	klog.FromContext(t.Context()).Info("fetch", "url", url)
	slog.Info("fetch", "url", url)
	if text := out.String(); strings.Contains(text, "s3cret") || strings.Count(text, "bob:<redacted>@") != 5 {
		t.Errorf("the log is %q", text)
	}
}
