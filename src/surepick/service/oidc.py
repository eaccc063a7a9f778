"""Admins log in by OpenID Connect: the authorisation code flow with PKCE, at one provider. Needs the extra `oidc`.

The provider says who somebody is; what they may do is what a member with that address may do (POST /members). So
whoever leaves is locked out by the provider, and whoever was never added gets nowhere.
"""

import base64
import hashlib
import secrets
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.concurrency import run_in_threadpool

from surepick.errors import InvalidInput
from surepick.service.dependencies import Service, ServiceDep, refuse_stranger, set_cookie
from surepick.store import members

ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA"]
"""Signatures with a public key. With a shared secret, or none, anybody who knows that could make an ID token."""

COOKIE = "surepick_oidc"
BEGUN_SECONDS = 600
"""How long somebody may take at the provider."""

LEEWAY_SECONDS = 60
"""By which the provider's clock may differ."""

# The admin's cookie is not sent along where the provider's page leads, since that is another site. A page of this
# server leads on instead of a redirect, and then it is.
WELCOME = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/"><title>Logged in</title>'

router = APIRouter(include_in_schema=False)


def require_library() -> None:
    """InvalidInput where the extra is missing; asked when the service starts with a provider."""
    try:
        import httpx  # noqa: F401
        import joserfc  # noqa: F401
    except ImportError:
        raise InvalidInput("Log-in by OpenID Connect needs pip install 'surepick[oidc]'.") from None


@router.get("/oidc/login")
async def begin(request: Request, service: ServiceDep) -> Response:
    """Send somebody to the provider, with a note in a cookie by which their return is recognised."""
    provider = await _provider(service)
    state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    wanted = {
        "response_type": "code",
        "client_id": service.settings.oidc_client_id,
        "redirect_uri": _return_address(request, service),
        "scope": "openid email",
        "state": state,
        "nonce": nonce,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    join = "&" if "?" in provider["authorization_endpoint"] else "?"
    response = RedirectResponse(provider["authorization_endpoint"] + join + urlencode(wanted), 303)
    response.set_cookie(
        COOKIE,
        str(_signer(service).dumps([state, nonce, verifier])),
        max_age=BEGUN_SECONDS,
        path="/oidc",
        httponly=True,
        samesite="lax",  # the return comes from the provider's site
        secure=service.is_encrypted(request),
    )
    return response


@router.get("/oidc/callback")
async def finish(request: Request, service: ServiceDep, state: str = "", code: str = "") -> Response:
    """Somebody comes back with a code: exchange it, check the ID token, and log the member in."""
    try:
        expected, nonce, verifier = _signer(service).loads(request.cookies.get(COOKIE, ""), max_age=BEGUN_SECONDS)
    except (BadData, ValueError):
        raise _refused(request, service, "This log-in was not begun here, or it took too long; begin again.") from None
    if not code or not secrets.compare_digest(state.encode(), str(expected).encode()):
        raise _refused(request, service, "The provider did not confirm this log-in; begin again.")
    claims = await _claims(request, service, code, str(verifier), str(nonce))
    email = claims.get("email")
    if not isinstance(email, str) or claims.get("email_verified", True) is not True:
        raise _refused(request, service, "The provider does not vouch for an address of yours; ask its operator.")
    found = await run_in_threadpool(_member, service, email)
    if found is None:
        raise _refused(request, service, f"{email} is no member of a project here; ask an owner to add the address.")
    response = HTMLResponse(WELCOME)
    response.delete_cookie(COOKIE, path="/oidc")
    set_cookie(response, request, service, *found)
    return response


def _member(service: Service, email: str) -> tuple[members.Member, str] | None:
    with service.database.reading() as connection:
        return members.by_email(connection, email)


async def _provider(service: Service) -> dict[str, Any]:
    """What the provider says about itself."""
    if not service.settings.oidc_issuer:
        raise HTTPException(404, "Log-in by OpenID Connect is not set up here.")
    address = service.settings.oidc_issuer.rstrip("/") + "/.well-known/openid-configuration"
    found: dict[str, Any] = await _fetch("GET", address)
    if found.get("issuer") != service.settings.oidc_issuer:
        raise HTTPException(502, "The provider calls itself by another name than SUREPICK_OIDC_ISSUER.")
    return found


async def _claims(request: Request, service: Service, code: str, verifier: str, nonce: str) -> dict[str, Any]:
    """What the provider says about whoever came back, after its signature was checked."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    settings, provider = service.settings, await _provider(service)
    reply = await _fetch(
        "POST",
        provider["token_endpoint"],
        auth=(settings.oidc_client_id, settings.oidc_client_secret),
        data={
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": _return_address(request, service),
            "code_verifier": verifier,
        },
    )
    keys = KeySet.import_key_set(await _fetch("GET", provider["jwks_uri"]))
    required = jwt.JWTClaimsRegistry(
        leeway=LEEWAY_SECONDS,
        iss={"essential": True, "value": settings.oidc_issuer},
        aud={"essential": True, "value": settings.oidc_client_id},
        exp={"essential": True},
        nonce={"essential": True, "value": nonce},
    )
    try:
        token = jwt.decode(str(reply.get("id_token", "")), keys, algorithms=ALGORITHMS)
        required.validate(token.claims)
    except (JoseError, ValueError):
        raise _refused(request, service, "The provider's word about you cannot be trusted; begin again.") from None
    return dict(token.claims)


async def _fetch(method: str, address: str, **options: Any) -> Any:
    import httpx

    try:
        async with httpx.AsyncClient(timeout=10.0) as client:
            reply = await client.request(method, address, **options)
            reply.raise_for_status()
            return reply.json()
    except (httpx.HTTPError, ValueError):
        raise HTTPException(502, "The identity provider does not answer as it should; try again later.") from None


def _refused(request: Request, service: Service, sentence: str) -> HTTPException:
    refuse_stranger(request, service)
    return HTTPException(401, sentence)


def _return_address(request: Request, service: Service) -> str:
    return f"{service.address(request)}/oidc/callback"


def _signer(service: Service) -> URLSafeTimedSerializer:
    return service.credentials.signer("oidc")
