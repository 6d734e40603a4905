package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/slipway-platform/slipway/apigroup/build/buildcontroller"
	"github.com/slipway-platform/slipway/cli/observe"
	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/oauth/login"
	"github.com/slipway-platform/slipway/router"
	csimetrics "github.com/slipway-platform/slipway/storage/csi/metrics"
)

// metricSource describes a package that defines metrics, and the endpoint that serves them.
type metricSource struct {
	folder, title, place string
	collectors           func() ([]prometheus.Collector, error)
}

// metricSources returns the packages that have metrics.
func metricSources() []metricSource {
	return []metricSource{
		{
			"oauth/login", "Logins", "`/metrics` of the API server", registered(func() error { _, err := login.NewMetrics(); return err }),
		}, {
			"apigroup/build/buildcontroller", "Builds", "`/metrics` of the API server", registered(func() error { _, err := buildcontroller.NewMetrics(); return err }),
		}, {
			"kube/volumeplugin", "FlexVolumes", "`/metrics` of the API server (attach, detach, expand) and of the kubelet (the other operations)",
			registered(func() error { _, err := volumeplugin.NewMetrics(); return err }),
		}, {
			"storage/csi/metrics", "CSI drivers", "`/metrics` at the address of `--http-endpoint` of `slipway csi controller` and `slipway csi node`",
			func() ([]prometheus.Collector, error) { return []prometheus.Collector{csimetrics.New()}, nil },
		}, {
			"router", "Routers", "`/metrics` at the address of `ROUTER_LISTEN_ADDR`, or port 1936",
			func() ([]prometheus.Collector, error) { return router.Collectors(), nil },
		}, {
			"cli/observe", "`oc observe`", "`/metrics` at the address of `--listen-addr`",
			func() ([]prometheus.Collector, error) { return observe.Collectors(), nil },
		},
	}
}

// registered returns a function that returns the metrics that register adds to the registry of
// Kubernetes components.
func registered(register func() error) func() ([]prometheus.Collector, error) {
	return func() ([]prometheus.Collector, error) {
		registry, ok := legacyregistry.Registerer().(prometheus.Collector)
		if !ok {
			return nil, fmt.Errorf("the registry of Kubernetes' components is a %T, which cannot describe its metrics", legacyregistry.Registerer())
		}
		existing := descriptions(registry)
		if err := register(); err != nil {
			return nil, err
		}
		return []prometheus.Collector{without{registry, existing}}, nil
	}
}

// without is a collector that describes only the metrics that are not in existing, which lists the
// metrics that were registered earlier.
type without struct {
	prometheus.Collector
	existing []string
}

// Describe sends the descriptors of the metrics that are not in existing to out.
func (w without) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range describe(w.Collector) {
		if !slices.Contains(w.existing, desc.String()) {
			out <- desc
		}
	}
}

// describe returns a collector's metric descriptors.
func describe(collector prometheus.Collector) (all []*prometheus.Desc) {
	out := make(chan *prometheus.Desc)
	var group sync.WaitGroup
	group.Go(func() { collector.Describe(out); close(out) })
	for desc := range out {
		all = append(all, desc)
	}
	group.Wait()
	return all
}

// descriptions returns the collectors' distinct descriptors as sorted strings.
func descriptions(collectors ...prometheus.Collector) []string {
	var texts []string
	for _, collector := range collectors {
		for _, desc := range describe(collector) {
			texts = append(texts, desc.String())
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

// metric contains a metric descriptor's fields.
type metric struct{ name, help, labels string }

// description parses the result of a descriptor's String method, because the type has no accessors.
var description = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "(?:\[ALPHA\] )?(.*?)", (?:unit: "[^"]*", )?constLabels: \{.*\}, variableLabels: \{([^}]*)\}\}$`)

func parse(text string) (metric, error) {
	match := description.FindStringSubmatch(text)
	if match == nil {
		return metric{}, fmt.Errorf("parse metric: %s has an unknown form", text)
	}
	return metric{name: match[1], help: strings.TrimSuffix(match[2], "."), labels: match[3]}, nil
}

// metricPage adds a page that lists all metrics.
func metricPage(all pages) error {
	page := &strings.Builder{}
	page.WriteString("# Metrics\n\nIn addition to the metrics of the Kubernetes components, Slipway exposes these metrics in Prometheus format." +
		" Each endpoint also serves the type of each metric.\n")
	for _, source := range metricSources() {
		collectors, err := source.collectors()
		if err != nil {
			return fmt.Errorf("describe metrics of %s: %w", source.folder, err)
		}
		var metrics []metric
		for _, text := range descriptions(collectors...) {
			m, err := parse(text)
			if err != nil {
				return err
			}
			metrics = append(metrics, m)
		}
		slices.SortFunc(metrics, func(a, b metric) int { return cmp.Compare(a.name, b.name) })
		fmt.Fprintf(page, "\n## %s\n\nServed by %s.\n\n", source.title, source.place)
		for _, m := range metrics {
			fmt.Fprintf(page, "- `%s`: %s.", m.name, escaper.Replace(m.help))
			if m.labels != "" {
				fmt.Fprintf(page, " Labels: `%s`.", strings.ReplaceAll(m.labels, ",", "`, `"))
			}
			page.WriteString("\n")
		}
	}
	all["metrics.md"] = page.String()
	return nil
}
