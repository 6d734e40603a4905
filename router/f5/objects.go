package f5

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
)

// objects contains the router's objects in one collection on the appliance.
type objects[T any] struct {
	// collection is the collection's path below /mgmt/tm.
	collection string
	// folder is the folder that contains the objects. It is empty if names are full paths or need
	// no folder.
	folder string
	// create returns the body of the request that creates an object, except for the name. change
	// returns the body of the request that changes an object. If change is nil, a changed object is
	// deleted and created again.
	create, change func(T) map[string]any
	// actual contains the objects on the appliance, keyed by name.
	actual map[string]T
}

// path returns the path to an object.
func (o *objects[T]) path(name string) string {
	if o.folder != "" {
		name = o.folder + "/" + name
	}
	return o.collection + "/" + escape(name)
}

// ensure creates missing objects and updates changed objects. If the appliance rejects an object,
// ensure continues with the rest of the objects.
func (o *objects[T]) ensure(ctx context.Context, c *client, desired map[string]T) error {
	return o.each(desired, func(name string) error {
		object := desired[name]
		existing, exists := o.actual[name]
		switch {
		case exists && reflect.DeepEqual(existing, object):
			return nil
		case exists && o.change != nil:
			if err := c.call(ctx, http.MethodPatch, o.path(name), o.change(object), nil); err != nil {
				return err
			}
		default:
			if exists {
				if err := o.remove(ctx, c, name); err != nil {
					return err
				}
			}
			body := o.create(object)
			if body["name"] = name; o.folder != "" {
				body["partition"] = o.folder
			}
			if err := c.call(ctx, http.MethodPost, o.collection, body, nil); err != nil {
				return err
			}
		}
		o.actual[name] = object
		return nil
	})
}

// prune deletes the objects that desired does not contain.
func (o *objects[T]) prune(ctx context.Context, c *client, desired map[string]T) error {
	return o.each(o.actual, func(name string) error {
		if _, needed := desired[name]; needed {
			return nil
		}
		return o.remove(ctx, c, name)
	})
}

// remove deletes an object if it exists.
func (o *objects[T]) remove(ctx context.Context, c *client, name string) error {
	err := c.call(ctx, http.MethodDelete, o.path(name), nil, nil)
	if err != nil && !is(err, http.StatusNotFound) {
		return err
	}
	delete(o.actual, name)
	return nil
}

// maxFailures is the maximum number of rejected objects per collection that an error lists.
const maxFailures = 5

// each calls do for all names in sorted order. It stops if the appliance does not respond.
func (o *objects[T]) each(all map[string]T, do func(name string) error) error {
	var failures []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		err := do(name)
		var failure *Failure
		switch {
		case err == nil:
		case !errors.As(err, &failure):
			return errors.Join(append(failures, err)...)
		case len(failures) < maxFailures:
			failures = append(failures, err)
		}
	}
	return errors.Join(failures...)
}

// fill reads the collection. convert returns the name and value of a REST API object, or false if
// the object does not belong to the router.
func fill[T, Item any](ctx context.Context, c *client, o *objects[T], query string, convert func(Item) (string, T, bool)) error {
	var list struct{ Items []Item }
	if err := c.get(ctx, o.collection+query, &list); err != nil {
		return err
	}
	o.actual = map[string]T{}
	for _, item := range list.Items {
		if name, object, own := convert(item); own {
			o.actual[name] = object
		}
	}
	return nil
}

// own returns the name of a router object in a folder. ok is false if the object is not in the
// folder or does not belong to the router.
func own(fullPath, folder string) (name string, ok bool) {
	name, ok = strings.CutPrefix(fullPath, folder+"/")
	return name, ok && strings.HasPrefix(name, "openshift_") && !strings.Contains(name, "/")
}

// exists reports whether an object exists at a path on the appliance.
func exists(ctx context.Context, c *client, path string) (bool, error) {
	err := c.get(ctx, path, nil)
	if is(err, http.StatusNotFound) {
		return false, nil
	}
	return err == nil, err
}

// ensureObject creates an object if it does not exist. It never updates an existing object.
func ensureObject(ctx context.Context, c *client, collection, folder, name string, body map[string]any) error {
	o := objects[any]{collection: collection, folder: folder}
	present, err := exists(ctx, c, o.path(name))
	if err != nil || present {
		return err
	}
	body["name"], body["partition"] = name, folder
	if err := c.call(ctx, http.MethodPost, collection, body, nil); err != nil && !is(err, http.StatusConflict) {
		return fmt.Errorf("create %q: %w", folder+"/"+name, err)
	}
	return nil
}
