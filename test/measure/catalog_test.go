package measure

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/catalogclient"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/internal/osbtest"
	"github.com/slipway-platform/slipway/test/kit"
)

const (
	// ordered is the number of instances that the test orders one after the other. idleInstances is
	// the number of instances whose memory the test measures.
	ordered, idleInstances = 20, 1000
	// brokerTime is how long the broker takes to handle a request.
	brokerTime = 200 * time.Millisecond
	// catalogAim is the target for the time that the catalog adds to the broker's own time.
	// instancesAim is the target for the memory of idle instances, in MB. pipelineAim is the target
	// for the time until a pipeline's first step.
	catalogAim, instancesAim, pipelineAim = 100 * time.Millisecond, 10, 2 * time.Second
)

// TestCatalog measures how long orders take with a broker that responds after a fixed time. It also
// measures how much of the control plane's memory idle instances use, and how long pipelines take
// to start.
func TestCatalog(t *testing.T) {
	r := newTable("catalog")
	r.page = "benchmark-catalog.md"
	c := kit.Start(t, kit.Options{})
	var delay atomic.Int64
	delay.Store(int64(brokerTime))
	catalog := slowBroker(t, c, &delay)
	var added []time.Duration
	for i := range ordered {
		start := time.Now()
		order(t, c, catalog, fmt.Sprintf("timed-%d", i))
		waitInstances(t, c, catalog, i+1)
		added = append(added, time.Since(start)-brokerTime)
	}
	r.aim("ordered until ready, in addition to the broker's time, median", median(added), catalogAim)
	r.add("same, 90th percentile", "%s", seconds(percentile(added, 90)))

	delay.Store(0)
	before := heapOf(t, c)
	for i := range idleInstances {
		order(t, c, catalog, fmt.Sprintf("idle-%d", i))
	}
	waitInstances(t, c, catalog, ordered+idleInstances)
	leaveAlone(*idle)
	r.most(fmt.Sprintf("live heap of the control plane for %d idle instances", idleInstances), float64(heapOf(t, c)-before)/1e6, instancesAim, "%.1f MB")

	c.BuildSample("pipeline-runner", "")
	var starts []time.Duration
	for i := range 5 {
		starts = append(starts, firstStep(t, c, fmt.Sprintf("pipeline-%d", i)))
	}
	r.aim("pipeline started until its first step runs, median of 5", median(starts), pipelineAim)
	r.write(t)
}

// slowBroker registers a broker that waits for the given delay before it handles a request for an
// instance.
func slowBroker(t *testing.T, c *kit.Cluster, delay *atomic.Int64) *catalogclient.Instances {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Distant.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	broker := osbtest.New()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/service_instances/") {
			leaveAlone(time.Duration(delay.Load()))
		}
		broker.ServeHTTP(w, r)
	}))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	c.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Secret, metadata: {name: broker}, stringData: {username: catalog, password: %q}}`, osbtest.Password))
	c.Apply(fmt.Sprintf(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ClusterServiceBroker, metadata: {name: slow},
		spec: {url: %q, relistBehavior: Manual, authInfo: {basic: {secretRef: {namespace: default, name: broker}}}}}`, server.URL))
	c.WaitFor("the classes of the broker", func(context.Context) error {
		if got := c.OC("get", "clusterservicebroker/slow", "-o", "jsonpath={.status.lastConditionState}"); got != "Ready" {
			return fmt.Errorf("the broker is %q", got)
		}
		return nil
	})
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	client, err := catalogclient.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Instances("default")
}

func order(t *testing.T, c *kit.Cluster, catalog *catalogclient.Instances, name string) {
	t.Helper()
	instance := &v1beta1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	instance.Spec.ClusterServiceClassExternalName, instance.Spec.ClusterServicePlanExternalName = "db", "small"
	if _, err := catalog.Create(t.Context(), instance, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitInstances waits until the given number of instances are ready.
func waitInstances(t *testing.T, c *kit.Cluster, catalog *catalogclient.Instances, number int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; leaveAlone(5 * time.Millisecond) {
		instances, err := catalog.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"})
		ready := 0
		if err == nil {
			for i := range instances.Items {
				if instances.Items[i].Status.LastConditionState == "Ready" {
					ready++
				}
			}
		}
		if ready >= number {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d instances are ready: %v", ready, number, err)
		}
	}
}

// heapOf returns the size of the control plane's live heap objects, in bytes.
func heapOf(t *testing.T, c *kit.Cluster) int64 {
	t.Helper()
	for range 2 { // the second collection empties pools
		c.OC("get", "--raw", "/debug/pprof/heap?gc=1&debug=1")
	}
	_, rest, _ := strings.Cut(c.OC("get", "--raw", "/debug/pprof/heap?gc=1&debug=1"), "# HeapAlloc = ")
	text, _, _ := strings.Cut(rest, "\n")
	bytes, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("read the heap's size: %v", err)
	}
	return bytes
}

// firstStep starts a pipeline, and returns the time until its first step runs.
func firstStep(t *testing.T, c *kit.Cluster, name string) time.Duration {
	t.Helper()
	c.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: %s}, spec: {strategy: {jenkinsPipelineStrategy: {
		jenkinsfile: "node { sh 'echo at $(date +%%s%%N).' }"}}}}`, name))
	start := time.Now()
	if _, err := c.Client.CoreV1().RESTClient().Post().AbsPath("/apis/build.openshift.io/v1/namespaces/default/buildconfigs/"+name+"/instantiate").
		SetHeader("Content-Type", "application/json").
		Body(fmt.Appendf(nil, `{"apiVersion": "build.openshift.io/v1", "kind": "BuildRequest", "metadata": {"name": %q}}`, name)).DoRaw(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := c.OC("logs", "--follow", "build/"+name+"-1")
	_, rest, _ := strings.Cut(log, "\nat ")
	text, _, _ := strings.Cut(rest, ".")
	nanoseconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("read the time of the first step: %v\n%s", err, log)
	}
	return time.Unix(0, nanoseconds).Sub(start)
}
