package volumeplugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// recordTimeout is the timeout for the requests before or after a driver call.
	recordTimeout = 10 * time.Second
	// takeoverSlack is how long a master waits for another master's call after the driver's timeout.
	// It exceeds callSlack by the time that it takes to kill the driver.
	takeoverSlack = time.Minute
)

// SharedRecords records attachments in the cluster, with one ConfigMap per volume. If the master
// that was attaching a volume is lost, another master finds the record.
//
// The records also prevent a master that was paused from calling a driver after another master has
// become the leader. Before a master calls a driver, it writes its name to the volume's record.
// Then it confirms that it is still the leader. If another master became the leader before this
// check, the first master does not call the driver. If another master becomes the leader later, it
// finds the record. It then does not call the driver for the volume until the first master has
// removed its name or must have killed the driver.
type SharedRecords struct {
	Client kubernetes.Interface
	// Master is the name of this master's node.
	Master string
	// Confirm returns an error if this master is not the leader.
	Confirm func(context.Context) error

	mu sync.Mutex
	// foreignCalls holds the other masters' calls that prevented a call by this master, keyed by the
	// name of the record.
	foreignCalls map[string]foreignCall
}

// foreignCall is a driver call by another master.
type foreignCall struct {
	version string // resource version of the record
	since   time.Time
}

func (r *SharedRecords) begin(c call) (end func(attached bool) error, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	record, err := r.read(ctx, c.attachment)
	if err != nil {
		return nil, err
	}
	if err := r.checkForeignCall(ctx, record); err != nil {
		return nil, err
	}
	nodes := nodesOf(record)
	attached := slices.Contains(nodes, c.node)
	if c.attach {
		if others := slices.DeleteFunc(slices.Clone(nodes), func(n string) bool { return n == c.node }); c.exclusive && len(others) > 0 {
			return nil, elsewhereError{c.attachment, others}
		}
		setNode(record, c.node, true)
	}
	record.Data[masterKey], record.Data[timeoutKey] = r.Master, c.timeout.String()
	if record, err = r.write(ctx, record); err != nil {
		return nil, fmt.Errorf("record driver call for %v: %w", c.attachment, err)
	}
	r.forgetForeignCall(record.Name)
	end = func(attached bool) error { return r.end(record, c.attachment, attached) }
	if err := r.Confirm(ctx); err != nil {
		return nil, errors.Join(err, end(attached))
	}
	return end, nil
}

// end records that the driver call has ended. It fails if another master has changed the record.
func (r *SharedRecords) end(record *corev1.ConfigMap, a attachment, attached bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	record = record.DeepCopy()
	setNode(record, a.node, attached)
	delete(record.Data, masterKey)
	delete(record.Data, timeoutKey)
	if _, err := r.write(ctx, record); err != nil {
		return fmt.Errorf("record end of driver call for %v: %w", a, err)
	}
	return nil
}

func (r *SharedRecords) remove(a attachment) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	record, err := r.read(ctx, a)
	if err == nil {
		err = errors.Join(r.checkForeignCall(ctx, record), r.Confirm(ctx))
	}
	if err == nil && slices.Contains(nodesOf(record), a.node) {
		setNode(record, a.node, false)
		_, err = r.write(ctx, record)
	}
	if err != nil {
		return fmt.Errorf("remove record of %v: %w", a, err)
	}
	return nil
}

// checkForeignCall returns an error if another master might be calling the driver for the volume.
func (r *SharedRecords) checkForeignCall(ctx context.Context, record *corev1.ConfigMap) error {
	master := record.Data[masterKey]
	if master == "" || master == r.Master { // the calls of this master's earlier processes have ended
		return nil
	}
	timeout, err := time.ParseDuration(record.Data[timeoutKey])
	if err != nil {
		return fmt.Errorf("parse record %q: %w; delete this ConfigMap if no driver is running", record.Name, err)
	}
	remaining := timeout + takeoverSlack - r.foreignCallSeen(record)
	if remaining <= 0 {
		return nil
	}
	if off, err := isOff(ctx, r.Client, master); err != nil || off {
		return err
	}
	return foreignCallError{master: master, driver: record.Data[driverKey], volume: record.Data[volumeKey], remaining: remaining}
}

// foreignCallSeen returns the time since this master first observed another master's call. The
// record contains no time, because clocks differ.
func (r *SharedRecords) foreignCallSeen(record *corev1.ConfigMap) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.foreignCalls[record.Name]
	if seen.version != record.ResourceVersion {
		seen = foreignCall{record.ResourceVersion, time.Now()}
		if r.foreignCalls == nil {
			r.foreignCalls = map[string]foreignCall{}
		}
		r.foreignCalls[record.Name] = seen
	}
	return time.Since(seen.since)
}

func (r *SharedRecords) forgetForeignCall(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.foreignCalls, name)
}

// foreignCallError is the error that is returned while another master might be calling the driver
// for a volume.
type foreignCallError struct {
	master, driver, volume string
	remaining              time.Duration
}

func (e foreignCallError) Error() string {
	return fmt.Sprintf("master %q might still be calling FlexVolume driver %q for volume %q: the call is over when the master responds, or in %s; if the master is off, run: oc adm taint node %s %s=nodeshutdown:NoExecute",
		e.master, e.driver, e.volume, e.remaining.Round(time.Second), e.master, corev1.TaintNodeOutOfService)
}

// isOff reports whether an administrator has confirmed that a host is off: its node is deleted, or
// has the out-of-service taint.
func isOff(ctx context.Context, client kubernetes.Interface, host string) (bool, error) {
	node, err := readNode(ctx, client, host)
	if err != nil {
		return false, err
	}
	return node.Name == "" || isOutOfService(node), nil
}

// endOwnCalls records that the driver calls of this master's earlier processes have ended, because
// the registry has killed the drivers.
func (r *SharedRecords) endOwnCalls(ctx context.Context) error {
	records, err := r.all(ctx)
	if err != nil {
		return err
	}
	for _, record := range records {
		if record.Data[masterKey] != r.Master {
			continue
		}
		delete(record.Data, masterKey)
		delete(record.Data, timeoutKey)
		if _, err := r.write(ctx, &record); err != nil {
			return fmt.Errorf("record end of driver call in %q: %w", record.Name, err)
		}
	}
	return nil
}
