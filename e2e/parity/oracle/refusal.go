package main

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// check refuses an injection that could never happen: a misspelt one would
// silently test nothing.
func (i *Inject) check() error {
	switch i.Verb {
	case "create", "update", "delete":
	default:
		return fmt.Errorf("inject.verb %q is not create, update or delete", i.Verb)
	}
	switch i.Resource {
	case "endpointslices", "endpoints":
	default:
		return fmt.Errorf("inject.resource %q is not endpointslices or endpoints", i.Resource)
	}
	if i.failure(&collection{}, "", "") == nil {
		return fmt.Errorf("inject.error %q is not known", i.Error)
	}
	return nil
}

// refuses answers nil when the request may go on.
func (i *Inject) refuses(c *collection, verb, namespace, name string) error {
	if i == nil || i.Verb != verb || i.Resource != c.resource.Resource {
		return nil
	}
	return i.failure(c, namespace, name)
}

func (i *Inject) failure(c *collection, namespace, name string) error {
	switch i.Error {
	case "internal":
		return apierrors.NewInternalError(errors.New("boom"))
	case "not-found":
		return apierrors.NewNotFound(c.resource, name)
	case "already-exists":
		return apierrors.NewAlreadyExists(c.resource, name)
	case "conflict":
		return conflict(c, name)
	case "forbidden":
		return apierrors.NewForbidden(c.resource, name, errors.New("denied"))
	case "namespace-terminating":
		return namespaceTerminating(c, namespace, name)
	}
	return nil
}

// namespaceTerminating is what the NamespaceLifecycle admission plugin answers;
// the controllers look for the cause, not for the text.
func namespaceTerminating(c *collection, namespace, name string) error {
	err := apierrors.NewForbidden(c.resource, name, fmt.Errorf(
		"unable to create new content in namespace %s because it is being terminated", namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", namespace),
		Field:   "metadata.namespace",
	})
	return err
}
