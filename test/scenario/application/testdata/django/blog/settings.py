import os
import pathlib

SECRET_KEY = os.environ.get("DJANGO_SECRET_KEY", "only for the build")
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["blog", "django.contrib.staticfiles"]
MIDDLEWARE = ["whitenoise.middleware.WhiteNoiseMiddleware"]
ROOT_URLCONF = "blog.urls"
WSGI_APPLICATION = "blog.wsgi.application"
TEMPLATES = [{"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}]
STATIC_URL = "/static/"
STATIC_ROOT = pathlib.Path(__file__).parent.parent / "collected"
STATICFILES_STORAGE = "whitenoise.storage.CompressedManifestStaticFilesStorage"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {"default": {
    "ENGINE": "django.db.backends." + os.environ.get("DATABASE_ENGINE", "postgresql"),
    "HOST": os.environ.get("DATABASE_SERVICE_NAME"),
    "NAME": os.environ.get("DATABASE_NAME"),
    "USER": os.environ.get("DATABASE_USER"),
    "PASSWORD": os.environ.get("DATABASE_PASSWORD"),
}}
