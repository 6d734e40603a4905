// Package netpol runs Kubernetes' end-to-end tests for network policies on a cluster with three
// hosts. Two of them share a network segment, and exchange packets with the third over VXLAN. `make
// netpol` runs it. Its FOCUS variable selects tests with a regular expression:
//
//	go test ./test/netpol -args -focus 'default-deny'
//
// SCTP tests run if the kernel supports SCTP.
package netpol

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubernetes/test/e2e/framework"
	_ "k8s.io/kubernetes/test/e2e/network/netpol" // declares the tests
	"k8s.io/kubernetes/test/utils/image"

	"github.com/slipway-platform/slipway/test/kit"
)

var focus = flag.String("focus", "", "run only tests whose names match this `expression`")

// suiteTimeout is the timeout for all tests together. A test takes about half a minute on two busy
// cores.
const suiteTimeout = 2 * time.Hour

func TestMain(m *testing.M) { kit.Main(m) }

func TestKubernetesSuiteOfNetworkPolicies(t *testing.T) {
	c := kit.Start(t, kit.Options{Segment: true})
	hosts := []*kit.Host{c, c.Join("second", kit.Options{}), c.Join("distant", kit.Options{Segment: true})}
	buildAgnhost(t, hosts...)
	nodes := countPods(t, c)
	// Use the default values of the flags as the suite's settings.
	flags := flag.NewFlagSet("suite", flag.ContinueOnError)
	framework.RegisterCommonFlags(flags)
	framework.RegisterClusterFlags(flags)
	framework.TestContext.KubeConfig = writeConfig(t, forward(t, c), c.Config)
	framework.AfterReadingAllFlags(&framework.TestContext)

	suite, reporter := ginkgo.GinkgoConfiguration()
	suite.Timeout = suiteTimeout
	if *focus != "" {
		suite.FocusStrings = []string{*focus}
	}
	if !hasSCTP() {
		suite.LabelFilter = "!Feature: containsAny SCTPConnectivity"
	}
	reporter.Succinct = true
	var total, passed int
	ginkgo.ReportAfterSuite("count", func(report ginkgo.Report) {
		for _, spec := range report.SpecReports {
			if spec.LeafNodeType.String() == "It" && spec.State.String() != "skipped" {
				total++
				if spec.State.String() == "passed" {
					passed++
				}
			}
		}
	})
	gomega.RegisterFailHandler(ginkgo.Fail)
	ginkgo.RunSpecs(t, "network policies", suite, reporter)
	t.Logf("%d of %d tests passed", passed, total)
	if total == 0 {
		t.Error("no test ran")
	}
	counts := nodes()
	t.Logf("pods by node: %v", counts)
	if len(counts) < len(hosts) {
		t.Errorf("the pods of the tests were only on the nodes %v", counts)
	}
}

// countPods counts the pods that start on each node until end is called.
func countPods(t *testing.T, c *kit.Cluster) (end func() map[string]int) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(c.Client, 0)
	var mu sync.Mutex
	nodes := map[types.UID]string{}
	record := func(object any) {
		if pod, isPod := object.(*corev1.Pod); isPod && pod.Spec.NodeName != "" {
			mu.Lock()
			defer mu.Unlock()
			nodes[pod.UID] = pod.Spec.NodeName
		}
	}
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: record, UpdateFunc: func(_, object any) { record(object) },
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	return func() map[string]int {
		close(stop)
		factory.Shutdown()
		counts := map[string]int{}
		for _, node := range nodes {
			counts[node]++
		}
		return counts
	}
}

// dockerfile builds the image for the suite's pods, which use only the agnhost program.
const dockerfile = "FROM scratch\nCOPY agnhost /agnhost\nENTRYPOINT [\"/agnhost\"]\n"

// buildAgnhost builds the image on all hosts, because the suite's pods cannot pull it.
func buildAgnhost(t *testing.T, hosts ...*kit.Host) {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "agnhost"), "./agnhost")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build agnhost: %v\n%s", err, output)
	}
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, host := range hosts {
		host.MustSlipway("images", "build", "--tag="+image.GetE2EImage(image.Agnhost), dir)
	}
}

// forward listens on a local address and forwards connections to the API server, which is in the
// network of the cluster's machine. It returns the local address.
func forward(t *testing.T, c *kit.Cluster) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); _ = listener.Close(); running.Wait() })
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { join(ctx, client, c) })
		}
	})
	return listener.Addr().String()
}

// join copies data between a connection and a new connection to the API server until either of them
// is closed.
func join(ctx context.Context, client net.Conn, c *kit.Cluster) {
	defer client.Close()
	server, err := c.Dial(ctx, "tcp", net.JoinHostPort(c.Address.String(), "8443"))
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { _ = client.Close(); _ = server.Close() })()
	var copying sync.WaitGroup
	copying.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
	_, _ = io.Copy(client, server)
	_ = client.Close()
	copying.Wait()
}

// writeConfig writes the administrator's kubeconfig with a different API server address.
func writeConfig(t *testing.T, address string, config *rest.Config) string {
	t.Helper()
	tls := config.TLSClientConfig
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{
		Server: "https://" + address, TLSServerName: "kubernetes.default.svc", CertificateAuthority: tls.CAFile, CertificateAuthorityData: tls.CAData,
	}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		ClientCertificate: tls.CertFile, ClientCertificateData: tls.CertData, ClientKey: tls.KeyFile, ClientKeyData: tls.KeyData,
	}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(fmt.Errorf("write kubeconfig: %w", err))
	}
	return path
}

// hasSCTP reports whether the kernel supports SCTP.
func hasSCTP() bool {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP)
	if err != nil {
		return false
	}
	_ = unix.Close(socket)
	return true
}
