-- Creates user and database if they are missing, and sets the passwords of the environment.
\set ON_ERROR_STOP on
\getenv user POSTGRESQL_USER
\getenv database POSTGRESQL_DATABASE
\getenv password POSTGRESQL_PASSWORD
\getenv admin POSTGRESQL_ADMIN_PASSWORD
\if :{?user}
SELECT NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'user') AS absent \gset
\if :absent
CREATE ROLE :"user" LOGIN;
\endif
ALTER ROLE :"user" PASSWORD :'password';
SELECT NOT EXISTS (SELECT FROM pg_database WHERE datname = :'database') AS absent \gset
\if :absent
CREATE DATABASE :"database" OWNER :"user";
\endif
\endif
\if :{?admin}
ALTER ROLE postgres PASSWORD :'admin';
\else
ALTER ROLE postgres PASSWORD NULL;
\endif
