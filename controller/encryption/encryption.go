// Package encryption rewrites stored objects after their encryption configuration has changed:
// objects that are stored as plain text and objects that are encrypted with an earlier key.
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

// Namespace, Name and Key identify the ConfigMap entry that records the version of the encryption
// configuration that all stored objects use. Because the ConfigMap is in the same store, the
// version is also correct after a backup is restored.
const (
	Namespace = "kube-system"
	Name      = "slipway-encryption"
	Key       = "version"
)

// Rewriter rewrites all objects of the given resources, once for each version of the encryption
// configuration. The API server writes an unchanged object only if the object is not encrypted with
// the current key. Therefore, an interrupted Rewriter can start again from the beginning.
type Rewriter struct {
	// Client is the configuration of a client that may read and update the resources.
	Client *rest.Config
	// Servers, if set, returns a client configuration for each API server. All servers must use the
	// current file before objects are written. A server with an earlier file would still encrypt
	// objects with the previous key.
	Servers func(context.Context) ([]*rest.Config, error)
	// Resources lists the resources that the API server encrypts.
	Resources []schema.GroupVersionResource
	// File is the path to the API server's EncryptionConfiguration. If File is empty, Run is a
	// no-op.
	File string
}

// Name returns the name of the component.
func (*Rewriter) Name() string { return "encryption" }

// checkInterval is the interval between two reads of the file and between retries of failed
// updates. The API server reads its file once a minute.
const checkInterval = 10 * time.Second

// Run rewrites objects until ctx is done.
func (r *Rewriter) Run(ctx context.Context, ready func()) error {
	ready()
	done, warned := "", ""
	for r.File != "" && ctx.Err() == nil {
		version, err := Version(r.File)
		count := 0
		if err == nil && version != done {
			count, err = r.rewrite(ctx, version)
		}
		switch {
		case err == nil:
			done, warned = version, ""
		case ctx.Err() == nil && !errors.Is(err, errNotLoaded) && err.Error() != warned:
			warned = err.Error()
			slog.Warn("cannot rewrite objects with secrets", "error", err, "retryAfter", checkInterval)
		}
		if count > 0 {
			slog.Info("objects with secrets are stored with the current encryption", "count", count)
		}
		select {
		case <-ctx.Done():
		case <-time.After(checkInterval):
		}
	}
	<-ctx.Done()
	return nil
}

// errNotLoaded means that the API server still uses an earlier version of the file.
var errNotLoaded = errors.New("the API server has not read the current encryption configuration yet")

// rewrite rewrites all objects. It returns the number of objects that it sent to the API server.
func (r *Rewriter) rewrite(ctx context.Context, version string) (count int, err error) {
	client, err := kubernetes.NewForConfig(r.Client)
	if err != nil {
		return 0, fmt.Errorf("create API client: %w", err)
	}
	objects, err := dynamic.NewForConfig(r.Client)
	if err != nil {
		return 0, fmt.Errorf("create API client: %w", err)
	}
	marks := client.CoreV1().ConfigMaps(Namespace)
	mark, err := marks.Get(ctx, Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("read encryption version: %w", err)
	}
	if mark.Data[Key] == version {
		return 0, nil
	}
	servers := []*rest.Config{r.Client}
	if r.Servers != nil {
		if servers, err = r.Servers(ctx); err != nil {
			return 0, err
		}
	}
	for _, server := range servers {
		if loaded, err := Loaded(ctx, server, version); err != nil || !loaded {
			return 0, errors.Join(err, errNotLoaded)
		}
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
		return count, fmt.Errorf("write encryption version: %w", err)
	}
	return count, nil
}

// Loaded reports whether an API server uses the given version of the file. The version is the hash
// of the file's content. The API server reports the hash of the loaded file in a metric.
func Loaded(ctx context.Context, server *rest.Config, version string) (bool, error) {
	client, err := kubernetes.NewForConfig(server)
	if err != nil {
		return false, fmt.Errorf("create API client: %w", err)
	}
	metrics, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return false, fmt.Errorf("request API server encryption configuration: %w", err)
	}
	return bytes.Contains(metrics, []byte(version)), nil
}

// Version returns the version of a file, which is the hash of its content.
func Version(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read encryption configuration: %w", err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// pageLimit is the number of objects per list request.
const pageLimit = 100

// all updates all objects of a resource without changing them.
func all(ctx context.Context,
	objects dynamic.NamespaceableResourceInterface) (count int, err error) {
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
				// Another client has deleted or updated the object.
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
