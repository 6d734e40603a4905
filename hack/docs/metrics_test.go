package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// newMetric matches code that creates a metric with either metrics library.
var newMetric = regexp.MustCompile(`\b(?:prometheus|metrics)\.New(?:Counter|Gauge|Histogram|Summary|Desc)`)

func TestReferenceHasEveryMetric(t *testing.T) {
	all := pages{}
	if err := metricPage(all); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"- `openshift_auth_basic_password_count_result`: Login attempts by password in response to a challenge, by result: success or error. Labels: `result`.",
		"- `openshift_build_total`: Builds by phase, reason and strategy. Labels: `phase`, `reason`, `strategy`.",
		"- `slipway_flexvolume_scan_seconds`: Duration of scans of the FlexVolume plugin directory.",
		"- `workqueue_depth`: Keys that wait for a worker. Labels: `name`, `driver_name`.",
		"- `haproxy_server_http_responses_total`: Responses by code.",
		"- `template_router_watch_failure`: ",
		"- `observe_counts`: ",
	} {
		if !strings.Contains(all["metrics.md"], want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(all["metrics.md"], "`apiserver_") {
		t.Error("the page contains metrics of Kubernetes")
	}
}

func TestEveryPackageWithMetricsIsListed(t *testing.T) {
	var sources []string
	for _, source := range metricSources() {
		sources = append(sources, source.folder)
	}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{"node_modules", "bin", "test", "hack", ".git"}, entry.Name()) {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		folder, err := filepath.Rel(root, filepath.Dir(path))
		if err == nil && newMetric.Match(text) && !slices.Contains(sources, folder) {
			t.Errorf("%s creates metrics, but metricSources lacks %s", path, folder)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
