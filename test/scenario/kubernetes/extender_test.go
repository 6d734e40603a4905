package kubernetes

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// extenderPolicy is a policy with predicates, a priority, and an extender.
const extenderPolicy = `{
	"kind": "Policy",
	"apiVersion": "v1",
	"predicates": [{"name": "PodFitsResources"}, {"name": "MatchNodeSelector"}],
	"priorities": [{"name": "EqualPriority", "weight": 1}],
	"extenders": [{
		"urlPrefix": "http://127.0.0.1:18018/scheduler/v1",
		"filterVerb": "filter",
		"prioritizeVerb": "prioritize",
		"weight": 5,
		"enableHttps": false,
		"nodeCacheCapable": false
	}]
}`

// extender is a scheduler extender that rejects nodes with the label damaged=true and prefers nodes
// with the label quiet=true. While broken is true, it responds to each request with an error.
type extender struct {
	broken atomic.Bool
}

func (e *extender) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var arguments extenderv1.ExtenderArgs
	if err := json.NewDecoder(r.Body).Decode(&arguments); err != nil || e.broken.Load() {
		http.Error(w, "the extender is broken", http.StatusInternalServerError)
		return
	}
	nodes := arguments.Nodes.Items
	switch r.URL.Path {
	case "/scheduler/v1/filter":
		result := extenderv1.ExtenderFilterResult{FailedNodes: extenderv1.FailedNodesMap{}}
		result.Nodes = &corev1.NodeList{Items: slices.DeleteFunc(nodes, func(node corev1.Node) bool {
			damaged := node.Labels["damaged"] == "true"
			if damaged {
				result.FailedNodes[node.Name] = "node(s) are damaged"
			}
			return damaged
		})}
		_ = json.NewEncoder(w).Encode(result)
	case "/scheduler/v1/prioritize":
		var scores extenderv1.HostPriorityList
		for _, node := range nodes {
			score := extenderv1.MinExtenderPriority
			if node.Labels["quiet"] == "true" {
				score = extenderv1.MaxExtenderPriority
			}
			scores = append(scores, extenderv1.HostPriority{Host: node.Name, Score: score})
		}
		_ = json.NewEncoder(w).Encode(scores)
	default:
		http.NotFound(w, r)
	}
}

// serveExtender runs an extender on the cluster's machine until the test ends.
func serveExtender(t *testing.T, c *kit.Cluster) *extender {
	t.Helper()
	e := &extender{}
	server := httptest.NewUnstartedServer(e)
	server.Listener.Close()
	if err := c.Do(func() (err error) {
		server.Listener, err = net.Listen("tcp", "127.0.0.1:18018")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(server.Close)
	return e
}

// TestSchedulerCallsExtenderOfPolicy makes an extender filter and score the nodes in a pool.
func TestSchedulerCallsExtenderOfPolicy(t *testing.T) {
	c := kit.Shared(t)
	t.Cleanup(func() { setPolicy(t, c, standardScheduler, "podMaxBackoffSeconds: 11") })
	const pool = "nodeSelector: {pool: extended}"
	addNode(t, c, "loud", map[string]string{"pool": "extended"})
	addNode(t, c, "quiet", map[string]string{"pool": "extended", "quiet": "true"})
	addNode(t, c, "damaged", map[string]string{"pool": "extended", "quiet": "true", "damaged": "true"})
	e := serveExtender(t, c)
	setPolicy(t, c, extenderPolicy, "urlPrefix: http://127.0.0.1:18018/scheduler/v1")

	for _, name := range []string{"one", "two", "three"} {
		makePod(t, c, pod(name, sleeper(), pool))
		wantPlace(t, c, name, "quiet")
	}
	makePod(t, c, pod("damaged", sleeper(), "nodeSelector: {damaged: 'true'}"))
	wantPlace(t, c, "damaged", "")
	waitEvent(c, c.Namespace, "damaged", "FailedScheduling", "node(s) are damaged")

	e.broken.Store(true)
	makePod(t, c, pod("waits", sleeper(), pool))
	waitEvent(c, c.Namespace, "waits", "FailedScheduling", "500")
	e.broken.Store(false)
	waitPlace(c, "waits", "quiet")
}
