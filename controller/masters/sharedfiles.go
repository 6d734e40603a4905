package masters

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/filelock"
)

// filesName is the name of the Secret in kube-system that contains the files that a command has
// changed on one master.
const filesName = "slipway-shared-files"

// filesResync is the delay after which writing a file is retried.
const filesResync = time.Minute

// SharedFiles keeps files in sync across all masters: passwords, and the keys that encrypt secrets.
// Change edits a file on this master and stores it in a Secret. As a component, SharedFiles writes
// the files that other masters have stored. If an administrator edits a file manually, the edited
// file is kept until the file's next Change.
type SharedFiles struct {
	Client kubernetes.Interface
	// Files maps keys in the Secret to files.
	Files map[string]SharedFile
	// Seal encrypts a file for the Secret, with a key that only masters have. Open decrypts the
	// file.
	Seal, Open func([]byte) ([]byte, error)
	// Record is the path to the file that records which versions this master has written or stored.
	// The lock file Record.lock excludes other processes, such as `slipway htpasswd`.
	Record string
}

// SharedFile is a file that is the same on all masters.
type SharedFile struct {
	// Path is the file's absolute path.
	Path string
	// Write, if set, applies another master's content to the file. If Write is nil, the content
	// replaces the file.
	Write func(content []byte) error
}

func (f SharedFile) write(content []byte) error {
	if f.Write != nil {
		return f.Write(content)
	}
	return atomicfile.Write(f.Path, content, 0o600)
}

// Name returns the component's name.
func (*SharedFiles) Name() string { return "shared-files" }

// Run writes the files that other masters have stored, until ctx is done.
func (f *SharedFiles) Run(ctx context.Context, ready func()) error {
	factory := informers.NewSharedInformerFactoryWithOptions(f.Client, filesResync, informers.WithNamespace(metav1.NamespaceSystem),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, filesName).String()
		}))
	informer := factory.Core().V1().Secrets().Informer()
	apply := func(object any) {
		unlock, err := f.lock()
		if err == nil {
			err = f.apply(object.(*corev1.Secret))
			unlock()
		}
		if err != nil {
			slog.Warn("cannot write another master's file", "error", err)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: apply, UpdateFunc: func(_, object any) { apply(object) },
	})
	if err != nil {
		return fmt.Errorf("watch shared files: %w", err)
	}
	defer controller.Start(ctx, factory)()
	ready()
	<-ctx.Done()
	return nil
}

// lock locks the files. It blocks while another process or goroutine is changing them.
func (f *SharedFiles) lock() (unlock func(), err error) {
	unlock, err = filelock.Lock(f.Record+".lock", filelock.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("lock shared files: %w", err)
	}
	return unlock, nil
}

// apply writes the files whose version in the Secret differs from the version on this master. The
// caller must hold the lock.
func (f *SharedFiles) apply(secret *corev1.Secret) error {
	for key, file := range f.Files {
		sealed, stored := secret.Data[key]
		if !stored {
			continue
		}
		versions, err := f.versions()
		if err != nil {
			return err
		}
		content, err := f.Open(sealed)
		if err != nil {
			return fmt.Errorf("read %s of another master: %w", key, err)
		}
		if versions[key] == hash(content) {
			continue
		}
		if err := file.write(content); err != nil {
			return err
		}
		if err := f.record(versions, key, content); err != nil {
			return err
		}
	}
	return nil
}

// Change calls edit, which changes a file on this master, and stores the file for the other
// masters. If another master changes the file at the same time, Change applies that change and
// calls edit again.
func (f *SharedFiles) Change(ctx context.Context, key string, edit func() error) error {
	isConflict := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	return retry.OnError(retry.DefaultBackoff, isConflict, func() error { return f.tryChange(ctx, key, edit) })
}

func (f *SharedFiles) tryChange(ctx context.Context, key string, edit func() error) error {
	unlock, err := f.lock() // exclude other changes until the edit is recorded
	if err != nil {
		return err
	}
	defer unlock()
	secrets := f.Client.CoreV1().Secrets(metav1.NamespaceSystem)
	store := func(secret *corev1.Secret) error {
		_, err := secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	}
	secret, err := secrets.Get(ctx, filesName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: filesName}}
		store = func(secret *corev1.Secret) error {
			_, err := secrets.Create(ctx, secret, metav1.CreateOptions{})
			return err
		}
	} else if err != nil {
		return fmt.Errorf("read shared files: %w", err)
	}
	if err := f.apply(secret); err != nil {
		return err
	}
	if err := edit(); err != nil {
		return err
	}
	content, err := os.ReadFile(f.Files[key].Path)
	if err != nil {
		return fmt.Errorf("read shared file: %w", err)
	}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	if secret.Data[key], err = f.Seal(content); err != nil {
		return err
	}
	if err := store(secret); err != nil {
		return err
	}
	versions, err := f.versions()
	if err != nil {
		return err
	}
	return f.record(versions, key, content)
}

// versions returns the recorded versions, keyed by file key.
func (f *SharedFiles) versions() (map[string]string, error) {
	versions := map[string]string{}
	data, err := os.ReadFile(f.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return versions, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &versions)
	}
	if err != nil {
		return nil, fmt.Errorf("read versions of shared files %q: %w", f.Record, err)
	}
	return versions, nil
}

// record records the version of a file.
func (f *SharedFiles) record(versions map[string]string, key string, content []byte) error {
	versions[key] = hash(content)
	data, err := json.Marshal(versions)
	if err != nil {
		return fmt.Errorf("encode shared file versions: %w", err)
	}
	return atomicfile.Write(f.Record, data, 0o600)
}

func hash(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
