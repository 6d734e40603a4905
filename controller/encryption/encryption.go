// Package encryption stores objects again whose encryption has changed: those of a cluster that
// stored them as plain text, and those that were encrypted with an earlier key.
package encryption

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The ConfigMap that says under which version of the encryption everything is stored. It lies in
// the store itself, so that it is true of a store that was restored from a backup.
const (
	Namespace = "kube-system"
	Name      = "slipway-encryption"
	Key       = "version"
)

// Rewriter stores all objects of some resources again, once for each version of the encryption. The
// API server writes an object that has not changed only if it is not encrypted with the present
// key, so a Rewriter that was interrupted starts from the beginning.
type Rewriter struct {
	// Client may read and update the resources.
	Client *rest.Config
	// Resources are those that the API server encrypts.
	Resources []schema.GroupVersionResource
	// File is the API server's EncryptionConfiguration. If it is empty, there is nothing to do.
	File string
}

// Name is the part's name.
func (*Rewriter) Name() string { return "encryption" }

// checkInterval is the time after which the file is read again, and objects that could not be
// stored are tried again. The API server reads its file once a minute.
const checkInterval = 10 * time.Second

// Run stores what has to be stored again until ctx ends.
func (r *Rewriter) Run(ctx context.Context, ready func()) error {
	ready()
	done, warned := "", ""
	for r.File != "" && ctx.Err() == nil {
		version, err := r.version()
		count := 0
		if err == nil && version != done {
			count, err = r.rewrite(ctx, version)
		}
		switch {
		case err == nil:
			done, warned = version, ""
		case ctx.Err() == nil && !errors.Is(err, errNotLoaded) && err.Error() != warned:
			warned = err.Error()
			slog.Warn("store objects with secrets again", "error", err, "retryAfter", checkInterval)
		}
		if count > 0 {
			slog.Info("objects with secrets are stored under the present encryption", "objects", count)
		}
		select {
		case <-ctx.Done():
		case <-time.After(checkInterval):
		}
	}
	<-ctx.Done()
	return nil
}

// version is that of the encryption in the file.
func (r *Rewriter) version() (string, error) {
	content, err := os.ReadFile(r.File)
	if err != nil {
		return "", fmt.Errorf("read encryption configuration: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// errNotLoaded says that the API server still uses an earlier version of the file.
var errNotLoaded = errors.New("the API server has not read the present encryption configuration yet")

// rewrite returns how many objects it has sent to the API server.
func (r *Rewriter) rewrite(ctx context.Context, version string) (count int, err error) {
	client, err := kubernetes.NewForConfig(r.Client)
	if err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	objects, err := dynamic.NewForConfig(r.Client)
	if err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	marks := client.CoreV1().ConfigMaps(Namespace)
	mark, err := marks.Get(ctx, Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("read version of the encryption: %w", err)
	}
	if mark.Data[Key] == version {
		return 0, nil
	}
	// A metric has the hash of what the API server has read.
	metrics, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask API server for its encryption configuration: %w", err)
	}
	if !bytes.Contains(metrics, []byte(version)) {
		return 0, errNotLoaded
	}
	var problems []error
	for _, resource := range r.Resources {
		n, err := all(ctx, objects.Resource(resource))
		count += n
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", resource.Resource, err))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return count, err
	}
	next := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: Name}, Data: map[string]string{Key: version}}
	if _, err = marks.Update(ctx, next, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		_, err = marks.Create(ctx, next, metav1.CreateOptions{})
	}
	if err != nil {
		return count, fmt.Errorf("write version of the encryption: %w", err)
	}
	return count, nil
}

// pageLimit is the number of objects that are read at a time.
const pageLimit = 100

// all stores all objects of a resource as they are.
func all(ctx context.Context, objects dynamic.NamespaceableResourceInterface) (count int, err error) {
	var problems []error
	options := metav1.ListOptions{Limit: pageLimit}
	for {
		page, err := objects.List(ctx, options)
		if err != nil {
			return count, errors.Join(append(problems, err)...)
		}
		for i := range page.Items {
			object := &page.Items[i]
			_, err := objects.Namespace(object.GetNamespace()).Update(ctx, object, metav1.UpdateOptions{})
			switch {
			case err == nil:
				count++
			case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
				// Deleted, or stored by somebody else meanwhile.
			default:
				problems = append(problems, fmt.Errorf("update %s/%s: %w", object.GetNamespace(), object.GetName(), err))
			}
			if ctx.Err() != nil {
				return count, ctx.Err()
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return count, errors.Join(problems...)
		}
	}
}
