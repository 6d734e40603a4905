// Package register checks that a cluster's API is linearizable while hosts fail. Clients
// concurrently read and write registers through several API servers and record the results. Check
// then searches for an order of all operations that explains the results.
//
// A register is the value in a ConfigMap in the default namespace. The model is the same as in
// etcd's robustness tests: an operation without a response may take effect at any later time, or
// never.
package register

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

const (
	// count is the number of registers that the clients use at the same time.
	count = 3
	// period is the time after which the clients switch to other registers, so that each register
	// has few operations without a response. These operations make the search for an order
	// expensive.
	period = 5 * time.Second
	// pause is the delay between two operations of a client. It leaves most of the CPU time to the
	// hosts.
	pause = 50 * time.Millisecond
	// timeout is the maximum time for which a client waits for a response.
	timeout = 3 * time.Second
	// checkTimeout is the maximum time to search for an order.
	checkTimeout = 2 * time.Minute
)

// label is the label that contains the number of the period in which a register is used.
const label = "register"

// Clients contains the clients that read and write the registers.
type Clients struct {
	start   time.Time
	stop    context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	history []porcupine.Operation
}

// Start starts a client for each API server. seed determines the clients' operations.
func Start(t testing.TB, servers []*rest.Config, seed uint64) *Clients {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	c := &Clients{start: time.Now(), stop: stop}
	t.Cleanup(c.end)
	for i, server := range servers {
		config := rest.CopyConfig(server)
		config.Wrap(func(next http.RoundTripper) http.RoundTripper { return once{next} })
		kube, err := kubernetes.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		one := &client{
			Clients: c, id: i, registers: kube.CoreV1().ConfigMaps(metav1.NamespaceDefault), random: rand.New(rand.NewPCG(seed, uint64(i))),
		}
		c.running.Go(func() { one.run(ctx) })
	}
	return c
}

// once sends each request only once. Otherwise, the HTTP client could repeat an update that has
// already taken effect, and report that the API server rejected it.
type once struct{ next http.RoundTripper }

func (o once) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(request)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

func (c *Clients) end() {
	c.stop()
	c.running.Wait()
}

// Check stops the clients. It fails the test unless there is an order of all operations that
// explains their results.
func (c *Clients) Check(t testing.TB) {
	t.Helper()
	c.end()
	unanswered := 0
	for _, operation := range c.history {
		if operation.Output.(output).unknown {
			unanswered++
		}
	}
	if unanswered == len(c.history) {
		t.Error("no operation got a response")
	}
	t.Logf("%d operations on registers, %d without a response", len(c.history), unanswered)
	if result := porcupine.CheckOperationsTimeout(model(), c.history, checkTimeout); result != porcupine.Ok {
		t.Errorf("the order of %d operations on registers is %s, want %s", len(c.history), result, porcupine.Ok)
	}
}

// client is one of the clients. It runs its operations one after another.
type client struct {
	*Clients
	id, writes int
	registers  coreclient.ConfigMapInterface
	random     *rand.Rand
	seen       *corev1.ConfigMap // the register that the client last read, or nil
}

func (c *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		epoch := int(time.Since(c.start) / period)
		name := registerName(epoch, c.random.IntN(count))
		attempt, cancel := context.WithTimeout(ctx, timeout)
		switch c.random.IntN(5) {
		case 0:
			c.write(attempt, epoch, name)
		case 1:
			c.list(attempt, epoch)
		case 2, 3:
			c.swap(attempt)
		default:
			c.read(attempt, name)
		}
		cancel()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func registerName(epoch, number int) string { return fmt.Sprintf("register-%d-%d", epoch, number) }

// value returns a value that no other write uses.
func (c *client) value() string {
	c.writes++
	return fmt.Sprintf("%d-%d", c.id, c.writes)
}

// since returns the time since the start of the history, in nanoseconds.
func (c *Clients) since() int64 { return int64(time.Since(c.start)) }

// record adds an operation, which started at begin, to the history. It omits an operation that
// certainly had no effect and returned no value.
func (c *client) record(in input, begin int64, value string, err error) {
	operation := porcupine.Operation{ClientId: c.id, Input: in, Call: begin, Return: c.since()}
	switch {
	case err == nil:
		operation.Output = output{value: value}
	case in.action == swap && (apierrors.IsConflict(err) || apierrors.IsNotFound(err)):
		operation.Output = output{refused: true}
	case in.action == read || neverSent(err):
		return
	default:
		operation.Output, operation.Return = output{unknown: true}, math.MaxInt64
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history = append(c.history, operation)
}

// neverSent reports whether a request failed because no connection could be established.
func neverSent(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}

func (c *client) read(ctx context.Context, name string) {
	begin := c.since()
	object, err := c.registers.Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		c.seen = object
	case apierrors.IsNotFound(err):
		object, err = &corev1.ConfigMap{}, nil
	}
	c.record(input{register: name, action: read}, begin, object.Data["value"], err)
}

// list reads all of a period's registers in a single request.
func (c *client) list(ctx context.Context, epoch int) {
	begin := c.since()
	list, err := c.registers.List(ctx, metav1.ListOptions{LabelSelector: label + "=" + strconv.Itoa(epoch)})
	if err != nil {
		return
	}
	values := map[string]string{}
	for _, object := range list.Items {
		values[object.Name] = object.Data["value"]
	}
	for number := range count {
		name := registerName(epoch, number)
		c.record(input{register: name, action: read}, begin, values[name], nil)
	}
}

// write sets a register's value, regardless of its current value.
func (c *client) write(ctx context.Context, epoch int, name string) {
	value, begin := c.value(), c.since()
	object := applycore.ConfigMap(name, metav1.NamespaceDefault).
		WithLabels(map[string]string{label: strconv.Itoa(epoch)}).WithData(map[string]string{"value": value})
	_, err := c.registers.Apply(ctx, object, metav1.ApplyOptions{FieldManager: label, Force: true})
	c.record(input{register: name, action: write, value: value}, begin, value, err)
}

// swap replaces the value that the client last read, if the register still has that value.
func (c *client) swap(ctx context.Context) {
	if c.seen == nil {
		return
	}
	object := c.seen.DeepCopy()
	c.seen = nil
	expected, value, begin := object.Data["value"], c.value(), c.since()
	object.Data = map[string]string{"value": value}
	_, err := c.registers.Update(ctx, object, metav1.UpdateOptions{})
	c.record(input{register: object.Name, action: swap, expected: expected, value: value}, begin, value, err)
}
