package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/slipway-platform/slipway/internal/payload"
	"github.com/slipway-platform/slipway/node/image"
	"github.com/slipway-platform/slipway/node/teardown"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/test/bench/host"
)

// stopTime is the time after which a stock program that does not exit is killed.
const stopTime = 15 * time.Second

// stock is the side that runs separate programs.
type stock struct {
	host        *host.Host
	programs    string
	payload     payload.Programs
	credentials *pki.Credentials
	nodeName    string
	running     []*program
}

// program is one running stock program.
type program struct {
	name    string
	command *exec.Cmd
	// done is closed when the program has exited. err is its error.
	done chan struct{}
	err  error
}

// newStock writes all files that a stock cluster needs before its first start: certificates,
// configuration files, the pod network and its cgroup. This work is not included in the time until
// the cluster is ready.
func newStock(h *host.Host, programs string) (side, error) {
	name, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find machine name: %w", err)
	}
	s := &stock{host: h, programs: programs, nodeName: strings.ToLower(name)}
	if s.payload, err = payload.Unpack(filepath.Join(programs, "payload")); err != nil {
		return nil, err
	}
	s.credentials, err = pki.Ensure(pki.Spec{
		Dir:             h.Path("pki"),
		AdminKubeconfig: h.Path("admin.kubeconfig"),
		APIHosts:        []string{host.Address, serviceAddress},
		APIURL:          "https://" + host.Address + ":6443",
		LoopbackURL:     "https://" + host.Address + ":6443",
		NodeName:        s.nodeName,
		NodeHosts:       []string{host.Address},
		ClusterDomain:   "cluster.local",
	})
	if err != nil {
		return nil, err
	}
	if err := s.writeFiles(); err != nil {
		return nil, err
	}
	if err := h.Do(func() error { return host.AddBridge(bridge, podGateway) }); err != nil {
		return nil, fmt.Errorf("create pod network: %w", err)
	}
	return s, makeCgroups(h.CgroupRoot)
}

// start starts the programs in the order in which the cluster becomes ready soonest. etcd, the API
// server and containerd start immediately. The kubelet starts as soon as containerd accepts
// connections, because it would exit otherwise. The other programs start when the API server is
// ready, because they would only compete with it for CPU time before that.
func (s *stock) start(ctx context.Context) (*cluster, error) {
	begin := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fail := func(err error) (*cluster, error) {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	if err := s.launch(cancel, "etcd", "kube-apiserver", "containerd"); err != nil {
		return fail(err)
	}
	if err := s.waitContainerd(ctx); err != nil {
		return fail(err)
	}
	if err := s.launch(cancel, "kubelet"); err != nil {
		return fail(err)
	}
	c, err := connectCluster(s.host, s.credentials.AdminKubeconfig)
	if err != nil {
		return fail(err)
	}
	if err := c.waitAPI(ctx); err != nil {
		return fail(err)
	}
	if err := s.launch(cancel, "kube-controller-manager", "kube-scheduler", "kube-proxy"); err != nil {
		return fail(err)
	}
	if err := c.waitNode(ctx, begin); err != nil {
		return fail(err)
	}
	if err := s.waitProxy(ctx); err != nil {
		return fail(err)
	}
	return c, nil
}

// launch starts programs in the host's network namespace, each with a log file. When a program
// exits, launch calls cancel with an error that quotes the end of the log.
func (s *stock) launch(cancel context.CancelCauseFunc, names ...string) error {
	arguments := s.arguments()
	for _, name := range names {
		path := s.host.Path("log", name+".log")
		log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("open log: %w", err)
		}
		p := &program{name: name, done: make(chan struct{})}
		p.command = exec.Command(filepath.Join(s.programs, name), arguments[name]...)
		p.command.Stdout, p.command.Stderr = log, log
		// containerd looks for its shim in this directory.
		p.command.Env = append(os.Environ(), "PATH="+s.payload.Dir+":"+os.Getenv("PATH"))
		err = s.host.Start(p.command)
		log.Close()
		if err != nil {
			return fmt.Errorf("start %s: %w", name, err)
		}
		go func() {
			defer close(p.done)
			p.err = p.command.Wait()
			output, _ := os.ReadFile(path)
			cancel(fmt.Errorf("stock %s ended: %v\n%s", name, p.err, output[max(0, len(output)-1000):]))
		}()
		s.running = append(s.running, p)
	}
	return nil
}

// waitContainerd waits until containerd is listening.
func (s *stock) waitContainerd(ctx context.Context) error {
	err := poll(ctx, 20*time.Millisecond, func(context.Context) (bool, error) {
		conn, err := net.Dial("unix", s.containerdSocket())
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
	if err != nil {
		return fmt.Errorf("wait for containerd: %w", err)
	}
	return nil
}

// waitProxy waits until the service proxy has written its first rules. `slipway up` also waits for
// this.
func (s *stock) waitProxy(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DialContext: s.host.Dial, DisableKeepAlives: true}}
	err := poll(ctx, 20*time.Millisecond, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:10256/healthz", nil)
		if err != nil {
			return false, err
		}
		response, err := client.Do(request)
		if err != nil {
			return false, nil // The proxy might not listen yet.
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("wait for kube-proxy: %w", err)
	}
	return nil
}

// busybox is the path at which Debian's busybox-static package installs busybox.
const busybox = "/bin/busybox"

// prepare loads the images that Slipway loads when it starts. In a real stock cluster, the nodes
// would have pulled these images earlier.
func (s *stock) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, host.ReadyTimeout)
	defer cancel()
	loader := image.Loader{Store: image.Store{Socket: s.containerdSocket(), Snapshotter: "overlayfs"}, Pause: s.payload.Pause, Busybox: busybox}
	loaded := false
	// Slipway also loads its own image, but only when pods can already start. The stock side does
	// not need this image, so loading stops after the pause image.
	err := loader.Run(ctx, func() { loaded = true; cancel() })
	if loaded {
		return nil
	}
	return errors.Join(fmt.Errorf("load image %s", pauseImage), err, context.Cause(ctx))
}

// stop stops the programs in the reverse order of their start. It stops the pods before containerd.
func (s *stock) stop(ctx context.Context) error {
	var problems []error
	for _, name := range []string{"kubelet", "kube-proxy", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"} {
		problems = append(problems, s.end(name))
	}
	problems = append(problems, teardown.Pods(ctx, s.containerdSocket(), time.Second), s.end("containerd"))
	_, err := teardown.Mounts(s.host.Path("kubelet"), s.host.Path("run"))
	s.running = nil
	return errors.Join(append(problems, err)...)
}

// end stops a program, and kills it if it does not exit in time. It returns an error if the program
// had already exited.
func (s *stock) end(name string) error {
	for _, p := range s.running {
		if p.name != name {
			continue
		}
		select {
		case <-p.done:
			return fmt.Errorf("stock %s ended unexpectedly: %v", name, p.err)
		default:
		}
		_ = p.command.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(stopTime):
			_ = p.command.Process.Kill()
			<-p.done
		}
	}
	return nil
}

func (s *stock) discard(ctx context.Context) error {
	return errors.Join(s.stop(ctx), teardown.Cgroups(s.host.CgroupRoot))
}
