package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/test/bench/host"
	"github.com/slipway-platform/slipway/test/bench/stats"
)

const (
	// importTags is the number of tags in the imported repository.
	importTags = 1000
	// importsIdle is the time for which the cluster is idle before the benchmark reads its memory.
	importsIdle = 30 * time.Second
)

// importsMaster raises the import limit to all tags, and allows a registry in the host's network.
const importsMaster = `apiVersion: v1
kind: MasterConfig
imagePolicyConfig: {maxImagesBulkImportedPerRepository: 1000}
slipway: {outbound: {allowedNetworks: [198.18.0.1/32]}}
`

// importRow contains the measurements for an import of all tags.
type importRow struct {
	name     string
	took     time.Duration
	requests int64 // number of requests to the registry
	// most is the highest anonymous memory of the control plane, in bytes. idle is its anonymous
	// memory before the first import.
	most, idle float64
}

// mostMemory is the target for most, as a multiple of idle.
const mostMemory = 1.5

// runImports boots a separate cluster, measures imports of a thousand tags, and reports the result.
func runImports(ctx context.Context, o options) error {
	machine, started := host.Describe(), time.Now()
	work, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return fmt.Errorf("create working directory: %w", err)
	}
	defer os.RemoveAll(work)
	program, err := filepath.Abs(o.slipway)
	if err != nil {
		return err
	}
	var rows []importRow
	err = onSlipway(ctx, filepath.Join(work, "imports"), "/slipway-bench-imports", program, importsMaster, func(_ *cluster, s *slipway) (err error) {
		rows, err = measureImports(ctx, s)
		return err
	})
	if err != nil {
		return fmt.Errorf("measure imports: %w", err)
	}
	t := stats.Table{Heading: []string{fmt.Sprintf("import of %d tags", importTags), "time", "requests", "maximum memory of the control plane", "of idle", "aim", ""}}
	for _, row := range rows {
		t.Rows = append(t.Rows, []string{row.name, fmt.Sprintf("%.1f s", row.took.Seconds()), fmt.Sprint(row.requests), stats.Mebibytes(row.most),
			fmt.Sprintf("%.2f", row.most/row.idle), fmt.Sprintf("<= %.2f", mostMemory), stats.Outcome(row.most <= mostMemory*row.idle)})
	}
	conditions := fmt.Sprintf("%s.\n%s; each response of the other registry takes %d ms.\n", machine, started.UTC().Format("2006-01-02 15:04 MST"), responseDelay.Milliseconds())
	fmt.Print("\n" + conditions + "\n" + t.Text())
	if o.markdown == "" {
		return nil
	}
	return importsSection.Write(o.markdown, conditions+"\n"+t.Markdown())
}

// importer is the cluster that imports the images.
type importer struct {
	host    *host.Host
	streams imageclient.ImageStreamInterface
	imports imageclient.ImageStreamImportInterface
	from    *farRegistry
}

func measureImports(ctx context.Context, s *slipway) (rows []importRow, err error) {
	from, err := newFarRegistry(s.host, importTags)
	if err != nil {
		return nil, err
	}
	defer from.stop()
	config, err := hostConfig(s.host, s.data("admin.kubeconfig"))
	if err != nil {
		return nil, err
	}
	client, err := imageclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	i := &importer{s.host, client.ImageStreams("default"), client.ImageStreamImports("default"), from}
	if err := host.Pause(ctx, importsIdle); err != nil {
		return nil, err
	}
	idle, err := i.memory()
	if err != nil {
		return nil, err
	}
	for _, measured := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"oc import-image --all", i.repository}, {"oc create, of a stream with as many tags", i.stream}, {"again, as scheduled", i.scheduled},
	} {
		row := importRow{name: measured.name, idle: idle}
		stop := i.watchMemory(ctx, &row.most)
		before, start := from.requests.Load(), time.Now()
		err := measured.do(ctx)
		row.took, row.requests = time.Since(start), from.requests.Load()-before
		stop()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", measured.name, err)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// repository imports all tags in one request.
func (i *importer) repository(ctx context.Context) error {
	done, err := i.imports.Create(ctx, &imagev1.ImageStreamImport{
		ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec: imagev1.ImageStreamImportSpec{Import: true, Repository: &imagev1.RepositoryImportSpec{
			From: corev1.ObjectReference{Kind: "DockerImage", Name: i.from.repository},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	for _, image := range done.Status.Repository.Images {
		if image.Image == nil {
			return fmt.Errorf("tag %q: %s", image.Tag, image.Status.Message)
		}
	}
	return i.complete(ctx, "all", nil)
}

// stream creates a stream that imports all tags.
func (i *importer) stream(ctx context.Context) error {
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Name: "each"}}
	for n := range importTags {
		stream.Spec.Tags = append(stream.Spec.Tags, imagev1.TagReference{
			Name: tagName(n), From: &corev1.ObjectReference{Kind: "DockerImage", Name: i.from.repository + ":" + tagName(n)},
			ImportPolicy: imagev1.TagImportPolicy{Scheduled: true},
		})
	}
	if _, err := i.streams.Create(ctx, stream, metav1.CreateOptions{}); err != nil {
		return err
	}
	return i.complete(ctx, "each", nil)
}

// scheduled changes all images, and makes the scheduled import due by backdating the stream's last
// check.
func (i *importer) scheduled(ctx context.Context) error {
	before, err := i.streams.Get(ctx, "each", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := i.from.fill(importTags, "changed"); err != nil {
		return err
	}
	const long = `{"metadata": {"annotations": {"openshift.io/image.dockerRepositoryCheck": "2020-01-01T00:00:00Z"}}}`
	if _, err := i.streams.Patch(ctx, "each", types.MergePatchType, []byte(long), metav1.PatchOptions{}); err != nil {
		return err
	}
	return i.complete(ctx, "each", before)
}

// complete waits until all of a stream's tags have new images.
func (i *importer) complete(ctx context.Context, stream string, before *imagev1.ImageStream) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	old := map[string]bool{}
	if before != nil {
		for _, tag := range before.Status.Tags {
			old[tag.Items[0].Image] = true
		}
	}
	count := 0
	err := poll(ctx, 200*time.Millisecond, func(ctx context.Context) (bool, error) {
		existing, err := i.streams.Get(ctx, stream, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		count = 0
		for _, tag := range existing.Status.Tags {
			if len(tag.Items) > 0 && !old[tag.Items[0].Image] {
				count++
			}
		}
		return count == importTags, nil
	})
	if err != nil {
		return fmt.Errorf("%d of %d tags were imported: %w", count, importTags, err)
	}
	return nil
}

// memory returns the anonymous memory of the control plane, in bytes.
func (i *importer) memory() (float64, error) {
	processes, err := i.host.Processes()
	if err != nil {
		return 0, err
	}
	for _, p := range processes {
		if p.Name == "slipway control-plane" {
			return memoryOf(p.PID, "RssAnon")
		}
	}
	return 0, errors.New("read control plane memory: no such process")
}

// watchMemory samples the control plane's memory until stop is called, and records the maximum.
func (i *importer) watchMemory(ctx context.Context, most *float64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = poll(ctx, 200*time.Millisecond, func(context.Context) (bool, error) {
			if now, err := i.memory(); err == nil {
				*most = max(*most, now)
			}
			return false, nil
		})
	}()
	return func() { cancel(); <-done }
}
