package shaping

import (
	"errors"
	"fmt"
	"strings"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// podPrefix and queuePrefix are the prefixes of the names of pod devices and their queues. The rest
// of the name is the same for a device and its queue.
const podPrefix, queuePrefix = "pod", "ifb"

func queueName(device string) string { return queuePrefix + strings.TrimPrefix(device, podPrefix) }

// ensureQueue creates the device that queues a pod's packets if it does not exist, and returns the
// device.
func ensureQueue(pod netlink.Link) (netlink.Link, error) {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MTU = queueName(pod.Attrs().Name), pod.Attrs().MTU
	if err := netlink.LinkAdd(&netlink.Ifb{LinkAttrs: attributes}); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("create device %q: %w; load the kernel module ifb", attributes.Name, err)
	}
	queue, err := netlinksafe.LinkByName(attributes.Name)
	if err != nil {
		return nil, fmt.Errorf("find device %q: %w", attributes.Name, err)
	}
	if queue.Type() != "ifb" {
		return nil, fmt.Errorf("create device %q: the name is in use by a device of type %q", attributes.Name, queue.Type())
	}
	if err := netlink.LinkSetUp(queue); err != nil {
		return nil, fmt.Errorf("set device %q up: %w", attributes.Name, err)
	}
	return queue, nil
}

// Read returns the current limits on a pod's device.
func Read(device string) (Limits, error) {
	link, err := netlinksafe.LinkByName(device)
	if err != nil {
		return Limits{}, fmt.Errorf("read bandwidth: find device %q: %w", device, err)
	}
	ingress, err := rate(link)
	if err != nil {
		return Limits{}, fmt.Errorf("read bandwidth of device %q: %w", device, err)
	}
	queue, err := findQueue(device)
	if err != nil || queue == nil {
		return Limits{Ingress: ingress}, err
	}
	egress, err := rate(queue)
	if err != nil {
		return Limits{}, fmt.Errorf("read bandwidth of device %q: %w", device, err)
	}
	filters, err := redirects(link, queue)
	if err != nil {
		return Limits{}, fmt.Errorf("read bandwidth of device %q: %w", device, err)
	}
	if filters == 0 {
		egress = 0
	}
	return Limits{ingress, egress}, nil
}

// findQueue returns the queue of a pod's device, or nil if it has none.
func findQueue(device string) (netlink.Link, error) {
	queue, err := netlinksafe.LinkByName(queueName(device))
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find device %q: %w", queueName(device), err)
	}
	return queue, nil
}

// Remove removes the queue of a pod's device. The pod's device does not have to exist. When the
// kernel removes the pod's device, it also removes the other objects that implement the limits.
func Remove(device string) error {
	queue, err := findQueue(device)
	if err != nil || queue == nil {
		return err
	}
	return remove(queue)
}

func remove(queue netlink.Link) error {
	if err := netlink.LinkDel(queue); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove device %q: %w", queue.Attrs().Name, err)
	}
	return nil
}

// RemoveOrphans removes the queues of devices that no longer exist.
func RemoveOrphans() error {
	links, err := netlinksafe.LinkList()
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	exists := map[string]bool{}
	for _, link := range links {
		exists[link.Attrs().Name] = true
	}
	var errs []error
	for _, link := range links {
		id, isQueue := strings.CutPrefix(link.Attrs().Name, queuePrefix)
		// The names of other programs' ifb devices, such as ifb0, are shorter.
		if isQueue && len(id) == unix.IFNAMSIZ-1-len(queuePrefix) && link.Type() == "ifb" && !exists[podPrefix+id] {
			errs = append(errs, remove(link))
		}
	}
	return errors.Join(errs...)
}
